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

// TestStories plays testdata/*.story: alternating commands, one per line, and after a line of
// dashes the resulting events, which are reviewed when they change.
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
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a file of the repository
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(strings.Split(string(raw), "\n"), strings.Split(got, "\n")); diff != "" && !*update {
				t.Errorf("the story differs (-want +got); review it and run the test with -update:\n%s", diff)
			}
		})
	}
}

// storyPlayer plays commands and records the resulting events.
type storyPlayer struct {
	*world
	t    *testing.T
	rows []row
}

// play returns a story with the results that its commands have now.
func play(t *testing.T, text string) string {
	player := &storyPlayer{t: t}
	var b strings.Builder
	skip := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case skip && line != "":
			continue // the former results
		case line == "----":
			b.WriteString("----\n" + renderRows(player.rows))
			player.rows, skip = nil, true
			continue
		case line != "" && !strings.HasPrefix(line, "#"):
			player.do(line)
		}
		skip = false
		b.WriteString(line + "\n")
	}
	if len(player.rows) > 0 {
		t.Error("the last commands have no line of dashes after them")
	}
	return b.String()
}

// renderRows aligns rows in columns.
func renderRows(rows []row) string {
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(tab, "%6.1fs\t%s\t%s\t%s\t%s\n", r.at.Seconds(), r.who, r.what, strings.Join(r.shards, "\t"), r.message)
	}
	_ = tab.Flush() // into a builder
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// commands of a story.
var commands = []struct {
	form *regexp.Regexp
	do   func(s *storyPlayer, args []string)
}{
	{regexp.MustCompile(`^shards (\d) at (.*)$`), func(s *storyPlayer, args []string) {
		s.world = newWorld(int(args[0][0]-'0'), parseRevision(args[1]))
	}},
	{regexp.MustCompile(`^spec (.*)$`), func(s *storyPlayer, args []string) {
		s.target = parseRevision(args[0])
		s.userDoes("requests " + args[0])
	}},
	{regexp.MustCompile(`^image (\S+) (cannot be pulled|is not memcached|crashes|loses the items|contains \S+)(?: on (\S+))?$`), func(s *storyPlayer, args []string) {
		name := args[0]
		if args[2] != "" {
			name = args[2] + "/" + name
		}
		s.faults[name] = args[1]
	}},
	{regexp.MustCompile(`^image (\S+) is fixed$`), func(s *storyPlayer, args []string) {
		for name := range s.faults {
			if name == args[0] || strings.HasSuffix(name, "/"+args[0]) {
				delete(s.faults, name)
			}
		}
		s.userDoes("fixes image " + args[0])
	}},
	{regexp.MustCompile(`^memcached does not start with (\S+)$`), func(s *storyPlayer, args []string) { s.faults[args[0]] = "rejected" }},
	{regexp.MustCompile(`^no node has room for a pod of (\S+)$`), func(s *storyPlayer, args []string) { s.faults[args[0]] = "no node" }},
	{regexp.MustCompile(`^a node with room for a pod of (\S+) joins$`), func(s *storyPlayer, args []string) {
		delete(s.faults, args[0])
		s.log(row{s.now, "node", "joins with room for " + args[0], s.renderShards(), ""})
	}},
	{regexp.MustCompile(`^nodes have no room for (\S+) yet$`), func(s *storyPlayer, args []string) {
		s.faults[args[0]] = "the node has no room for it yet"
	}},
	{regexp.MustCompile(`^nodes have room for (\S+)$`), func(s *storyPlayer, args []string) {
		delete(s.faults, args[0])
		s.log(row{s.now, "node", "has room for " + args[0], s.renderShards(), ""})
	}},
	{regexp.MustCompile(`^no node will ever have room for (\S+)$`), func(s *storyPlayer, args []string) { s.faults[args[0]] = "never" }},
	{regexp.MustCompile(`^(un)?pause$`), func(s *storyPlayer, args []string) {
		s.paused = args[0] == ""
		s.userDoes(args[0] + "pauses")
	}},
	{regexp.MustCompile(`^pods hand over their items$`), func(s *storyPlayer, _ []string) { s.handsOver = true }},
	{regexp.MustCompile(`^updates are by handover$`), func(s *storyPlayer, _ []string) { s.byHandover = true }},
	{regexp.MustCompile(`^retry$`), func(s *storyPlayer, _ []string) {
		s.retries++
		s.userDoes("retries")
	}},
	{regexp.MustCompile(`^the spec is (in)?valid$`), func(s *storyPlayer, args []string) {
		if s.invalid = ""; args[0] != "" {
			s.invalid = "timeZone \"Mars\" is unknown"
		}
		s.userDoes("sets a spec that is " + args[0] + "valid")
	}},
	{regexp.MustCompile(`^onItemLoss (Rollback|Continue)$`), func(s *storyPlayer, args []string) {
		s.allowItemLoss = args[0] == "Continue"
		s.userDoes("sets onItemLoss to " + args[0])
	}},
	{regexp.MustCompile(`^crossSeriesUpgrade (Forbid|Allow)$`), func(s *storyPlayer, args []string) {
		s.allowCrossSeries = args[0] == "Allow"
		s.userDoes("sets crossSeriesUpgrade to " + args[0])
	}},
	{regexp.MustCompile(`^min period (\S+)$`), func(s *storyPlayer, args []string) { s.minPeriod = s.duration(args[0]) }},
	{regexp.MustCompile(`^the maintenance window opens in (\S+)$`), func(s *storyPlayer, args []string) { s.windowOpensAt = s.now + s.duration(args[0]) }},
	{regexp.MustCompile(`^hit ratio gate of (\S+), then (Stop|Continue)$`), func(s *storyPlayer, args []string) {
		s.hitRatioGate = &modelHitRatioGate{timeout: s.duration(args[0]), continues: args[1] == "Continue", recovers: -1}
	}},
	{regexp.MustCompile(`^the hit ratio recovers after (\S+)$`), func(s *storyPlayer, args []string) { s.hitRatioGate.recovers = s.duration(args[0]) }},
	{regexp.MustCompile(`^(drain|crash) cache-(\d)$`), func(s *storyPlayer, args []string) {
		shard := s.shards[int(args[1][0]-'0')]
		if args[0] == "drain" {
			s.drain(shard)
			s.log(row{s.now, "node", "is drained of " + shard.name, s.renderShards(), ""})
			return
		}
		s.crash(shard)
		s.log(row{s.now, "kernel", "kills memcached of " + shard.name, s.renderShards(), ""})
	}},
	{regexp.MustCompile(`^recover cache-(\d)$`), func(s *storyPlayer, args []string) {
		shard := s.shards[int(args[0][0]-'0')]
		pod, _ := shard.activeAndNext()
		s.start(shard, pod)
		s.log(row{s.now, "kubelet", "starts " + pod.running.String() + " for " + shard.name + " again", s.renderShards(), ""})
	}},
	{regexp.MustCompile(`^lose the second pod of cache-(\d)$`), func(s *storyPlayer, args []string) {
		shard := s.shards[int(args[0][0]-'0')]
		_, next := shard.activeAndNext()
		shard.pods = slices.DeleteFunc(shard.pods, func(p *modelPod) bool { return p == next })
		s.log(row{s.now, "node", "is lost with the second pod of " + shard.name, s.renderShards(), ""})
	}},
	{regexp.MustCompile(`^a restore (starts|finishes)$`), func(s *storyPlayer, args []string) {
		if s.restoreRunning = ""; args[0] == "starts" {
			s.restoreRunning = "fill"
		}
		s.userDoes("sees that a restore " + args[0])
	}},
	{regexp.MustCompile(`^wait (\S+)$`), func(s *storyPlayer, args []string) {
		s.now += s.duration(args[0])
		s.log(row{s.now, "clock", args[0] + " pass", s.renderShards(), ""})
	}},
	{regexp.MustCompile(`^a quota (allows|does not allow) second pods$`), func(s *storyPlayer, args []string) {
		if delete(s.faults, "quota"); args[0] != "allows" {
			s.faults["quota"] = args[0]
		}
	}},
	{regexp.MustCompile(`^run(?: until (.*))?$`), func(s *storyPlayer, args []string) { s.play(args[0]) }},
}

func (s *storyPlayer) do(line string) {
	for _, c := range commands {
		if found := c.form.FindStringSubmatch(line); found != nil {
			c.do(s, found[1:])
			return
		}
	}
	s.t.Fatalf("no command: %s", line)
}

// play runs until the steady state, or until the last event contains a text.
func (s *storyPlayer) play(until string) {
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
		s.t.Errorf("no steady state: %+v", d)
	case until != "" && !enough():
		s.t.Errorf("the steady state came before %q", until)
	case s.violation != "":
		s.t.Error(s.violation)
	}
}

func (s *storyPlayer) log(r row) { s.rows = append(s.rows, r) }

// userDoes logs an edit by the user.
func (s *storyPlayer) userDoes(what string) { s.log(row{s.now, "user", what, s.renderShards(), ""}) }

func (s *storyPlayer) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func TestModelRevisionRoundTrips(t *testing.T) {
	for i, text := range []string{"1.6.38", "1.6.38 -t8", "1.6.38 -t8 128Mi cpu=2 label=x", "1.6.38 128Mi label=x"} {
		if got := parseRevision(text).String(); got != text {
			t.Error(strconv.Itoa(i), got)
		}
	}
}
