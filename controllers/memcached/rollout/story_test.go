package rollout

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestStories plays testdata/*.story. Each has, in turns, what happens, one command
// a line, and after a line of dashes what came of it, one step a line, which a
// person reviews.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.story")
	if err != nil || len(files) == 0 {
		t.Fatalf("stories: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".story"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(raw))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a golden file is everybody's
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(strings.Split(string(raw), "\n"), strings.Split(got, "\n")); diff != "" && !*update {
				t.Errorf("another story than the one told (-want +got); -update writes it anew:\n%s", diff)
			}
		})
	}
}

// storyteller plays commands and keeps what came of them.
type storyteller struct {
	*world
	t    *testing.T
	rows []row
}

// play returns a story with what comes of its commands now.
func play(t *testing.T, text string) string {
	teller := &storyteller{t: t}
	var b strings.Builder
	skip := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case skip && line != "":
			continue // what came of it before
		case line == "----":
			b.WriteString("----\n" + picture(teller.rows))
			teller.rows, skip = nil, true
			continue
		case line != "" && !strings.HasPrefix(line, "#"):
			teller.do(line)
		}
		skip = false
		b.WriteString(line + "\n")
	}
	if len(teller.rows) > 0 {
		t.Error("the last commands have no line of dashes after them")
	}
	return b.String()
}

// picture lays rows out in columns.
func picture(rows []row) string {
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(tab, "%6.1fs\t%s\t%s\t%s\t%s\n", r.at.Seconds(), r.who, r.what, strings.Join(r.shards, "\t"), r.sentence)
	}
	_ = tab.Flush() // into a builder
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// commands are what may happen in a story.
var commands = []struct {
	form *regexp.Regexp
	do   func(s *storyteller, args []string)
}{
	{regexp.MustCompile(`^shards (\d) at (.*)$`), func(s *storyteller, args []string) {
		s.world = newWorld(int(args[0][0]-'0'), parseRevision(args[1]))
	}},
	{regexp.MustCompile(`^spec (.*)$`), func(s *storyteller, args []string) {
		s.target = parseRevision(args[0])
		s.person("asks for " + args[0])
	}},
	{regexp.MustCompile(`^image (\S+) (cannot be pulled|is not memcached|crashes|loses the items|is really \S+)(?: on (\S+))?$`), func(s *storyteller, args []string) {
		name := args[0]
		if args[2] != "" {
			name = args[2] + "/" + name
		}
		s.fates[name] = args[1]
	}},
	{regexp.MustCompile(`^image (\S+) is mended$`), func(s *storyteller, args []string) {
		for name := range s.fates {
			if name == args[0] || strings.HasSuffix(name, "/"+args[0]) {
				delete(s.fates, name)
			}
		}
		s.person("mends image " + args[0])
	}},
	{regexp.MustCompile(`^memcached does not start with (\S+)$`), func(s *storyteller, args []string) { s.fates[args[0]] = "refused" }},
	{regexp.MustCompile(`^no node takes a pod of (\S+)$`), func(s *storyteller, args []string) { s.fates[args[0]] = "no node" }},
	{regexp.MustCompile(`^a node comes that takes a pod of (\S+)$`), func(s *storyteller, args []string) {
		delete(s.fates, args[0])
		s.log(row{s.now, "node", "comes that takes " + args[0], s.pictures(), ""})
	}},
	{regexp.MustCompile(`^nodes have no room for (\S+) yet$`), func(s *storyteller, args []string) {
		s.fates[args[0]] = "the node has no room for it yet"
	}},
	{regexp.MustCompile(`^nodes have room for (\S+)$`), func(s *storyteller, args []string) {
		delete(s.fates, args[0])
		s.log(row{s.now, "node", "has room for " + args[0], s.pictures(), ""})
	}},
	{regexp.MustCompile(`^no node will ever have room for (\S+)$`), func(s *storyteller, args []string) { s.fates[args[0]] = "never" }},
	{regexp.MustCompile(`^(un)?pause$`), func(s *storyteller, args []string) {
		s.paused = args[0] == ""
		s.person(args[0] + "pauses")
	}},
	{regexp.MustCompile(`^retry$`), func(s *storyteller, _ []string) {
		s.retries++
		s.person("has it tried again")
	}},
	{regexp.MustCompile(`^the spec is( not)? valid$`), func(s *storyteller, args []string) {
		if s.invalid = ""; args[0] != "" {
			s.invalid = "timeZone \"Mars\" is not known"
		}
		s.person("writes a spec that is" + args[0] + " valid")
	}},
	{regexp.MustCompile(`^when not warm (Stop|Continue)$`), func(s *storyteller, args []string) {
		s.acceptCold = args[0] == "Continue"
		s.person("says: when not warm, " + args[0])
	}},
	{regexp.MustCompile(`^at least (\S+) between shards$`), func(s *storyteller, args []string) { s.minBetween = s.duration(args[0]) }},
	{regexp.MustCompile(`^the window opens in (\S+)$`), func(s *storyteller, args []string) { s.opensAt = s.now + s.duration(args[0]) }},
	{regexp.MustCompile(`^hit ratio gate of (\S+), then (Stop|Continue)$`), func(s *storyteller, args []string) {
		s.gate = &modelGate{timeout: s.duration(args[0]), goesOn: args[1] == "Continue", recovers: -1}
	}},
	{regexp.MustCompile(`^clients find as much as before after (\S+)$`), func(s *storyteller, args []string) { s.gate.recovers = s.duration(args[0]) }},
	{regexp.MustCompile(`^(drain|crash) cache-(\d)$`), func(s *storyteller, args []string) {
		shard := s.shards[int(args[1][0]-'0')]
		if args[0] == "drain" {
			s.drain(shard)
			s.log(row{s.now, "node", "is drained of " + shard.name, s.pictures(), ""})
			return
		}
		s.crash(shard)
		s.log(row{s.now, "kernel", "kills memcached of " + shard.name, s.pictures(), ""})
	}},
	{regexp.MustCompile(`^come up cache-(\d)$`), func(s *storyteller, args []string) {
		shard := s.shards[int(args[0][0]-'0')]
		pod, _ := shard.holders()
		s.start(shard, pod)
		s.log(row{s.now, "kubelet", "starts " + pod.runs.String() + " for " + shard.name + " again", s.pictures(), ""})
	}},
	{regexp.MustCompile(`^lose the second pod of cache-(\d)$`), func(s *storyteller, args []string) {
		shard := s.shards[int(args[0][0]-'0')]
		_, next := shard.holders()
		shard.pods = slices.DeleteFunc(shard.pods, func(p *modelPod) bool { return p == next })
		s.log(row{s.now, "node", "is lost with the second pod of " + shard.name, s.pictures(), ""})
	}},
	{regexp.MustCompile(`^wait (\S+)$`), func(s *storyteller, args []string) {
		s.now += s.duration(args[0])
		s.log(row{s.now, "clock", args[0] + " pass", s.pictures(), ""})
	}},
	{regexp.MustCompile(`^a quota (allows|does not allow) second pods$`), func(s *storyteller, args []string) {
		if delete(s.fates, "quota"); args[0] != "allows" {
			s.fates["quota"] = args[0]
		}
	}},
	{regexp.MustCompile(`^run(?: until (.*))?$`), func(s *storyteller, args []string) { s.play(args[0]) }},
}

func (s *storyteller) do(line string) {
	for _, c := range commands {
		if found := c.form.FindStringSubmatch(line); found != nil {
			c.do(s, found[1:])
			return
		}
	}
	s.t.Fatalf("no command: %s", line)
}

// play runs until nothing moves, or until a line of the story holds a text.
func (s *storyteller) play(until string) {
	enough := func() bool {
		if until == "" {
			return false
		}
		last := s.rows[len(s.rows)-1]
		return strings.Contains(strings.Join(append([]string{last.what}, last.shards...), " "), until)
	}
	d, ok := s.run(s.log, enough)
	switch {
	case !ok:
		s.t.Errorf("it does not come to rest: %+v", d)
	case until != "" && !enough():
		s.t.Errorf("it came to rest before %q", until)
	case s.breach != "":
		s.t.Error(s.breach)
	}
}

func (s *storyteller) log(r row) { s.rows = append(s.rows, r) }

// person logs what the person did; the operator has not looked yet.
func (s *storyteller) person(what string) { s.log(row{s.now, "person", what, s.pictures(), ""}) }

func (s *storyteller) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// A story is only as good as the model's reading of revisions.
func TestRevisionsAreReadAsTheyAreWritten(t *testing.T) {
	for i, text := range []string{"1.6.38", "1.6.38 -t8", "1.6.38 -t8 128Mi cpu=2 label=x", "1.6.38 128Mi label=x"} {
		if got := parseRevision(text).String(); got != text {
			t.Error(strconv.Itoa(i), got)
		}
	}
}
