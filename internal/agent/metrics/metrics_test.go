package metrics

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/internal/agent/forwarder"
	"github.com/memcached-operator/memcached-operator/internal/agent/sizing"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

var update = flag.Bool("update", false, "write the golden file")

// server answers with stats by request.
type server map[string][][2]string

func (s server) EachStat(_ context.Context, request string, visit func(name, value []byte)) error {
	stats, ok := s[request]
	if !ok {
		return errors.New("no answer")
	}
	for _, stat := range stats {
		visit([]byte(stat[0]), []byte(stat[1]))
	}
	return nil
}

// fullServer has a value of each stat that the table uses, and two slab classes.
func fullServer() server {
	s := server{"stats": {{"version", "1.6.45"}, {"pid", "1"}}}
	var n int
	for request, places := range slots {
		var names []string
		for name := range places {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			n++
			value, prefixes := fmt.Sprint(n), []string{""}
			switch {
			case request == settings && (strings.HasPrefix(name, "lru_crawler") && len(name) == len("lru_crawler") || name == "lru_maintainer_thread"):
				value = "yes"
			case name == "rusage_user":
				value = "12.034567"
			case name == "maxconns", name == "cmd_set":
				value = "1024"
			case name == "total_malloced":
				value = "1048576"
			case request == items:
				prefixes = []string{"items:5:", "items:12:"}
			case request == slabs:
				prefixes = []string{"5:", "12:"}
			}
			for _, prefix := range prefixes {
				s[requests[request]] = append(s[requests[request]], [2]string{prefix + name, value})
			}
		}
	}
	return s
}

func idle() *Idle {
	i := &Idle{}
	i.Add(299, true, 1)
	i.Add(300, true, 20)
	i.Add(3600, false, 300)
	i.Add(86400, true, 4000)
	return i
}

func read(t testing.TB, s server) *Reading {
	t.Helper()
	r := &Reading{}
	if err := r.Read(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return r
}

// fullInput has every metric.
func fullInput(t testing.TB) *Input {
	at := time.Unix(1_800_000_000, 250_000_000)
	start := wire.Start{Result: wire.StartHandedOver, Items: 90, ItemsBefore: 100, At: at, HandoverSeconds: 12.5, GapSeconds: 0.25, Mode: wire.ModeAvailable, StaleSeconds: 0.5}
	in := &Input{
		Reading: read(t, fullServer()), Serving: true, EvictionAge: 33, Idle: idle(), Size: &sizing.Report{Recommendation: sizing.Recommendation{Bytes: 5 << 20, Reason: sizing.Unused}, Observed: time.Hour, Used: [4]float64{1, 2, 3, 4}, Lost: [5]float64{.5, .4, .3, .2, .1}}, WorkingSet: 1 << 20, MemoryLimit: 2 << 20,
		Connections: &forwarder.Connections{Silent: 7, Forwarded: 5, Plain: 3, AllPlain: 11, Refused: 9},
		Process:     Process{1.25, 2, 3, math.MaxUint64, 5, 6, 7.5, 8, 9},
		Status: wire.Status{Phase: wire.PhaseServing, AgentVersion: "1.1.0", Start: start, ArgumentsError: "refused",
			Scaling: &wire.ScalingStatus{ID: "3-4-1"},
			Secrets: &wire.Secrets{Certificate: wire.Certificate{Error: "expired", SHA256: "ab", NotBefore: at, NotAfter: at.Add(time.Hour), PlainConnections: 3}}},
		History: History{Starts: map[wire.StartResult]int64{wire.StartWarm: 3}, UnavailableSeconds: 1.5, LastOutage: 0.5, Saves: 4, FailedSaves: 1,
			SavedAt: at, SaveSeconds: 0.75, SavedItems: 99, Drains: 2, DrainedAt: at, Received: 1, FailedReceived: 2, FailedSent: 3, Handover: &start},
	}
	for _, d := range []time.Duration{20 * time.Microsecond, 50 * time.Microsecond, 3 * time.Millisecond, time.Second} {
		in.Probes.Add(d)
	}
	return in
}

func TestGolden(t *testing.T) {
	const golden = "testdata/metrics.golden.txt"
	got := strings.ReplaceAll(string(Append(nil, fullInput(t), true)), runtime.Version(), "go1.0")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); review it and run the test with -update:\n%s", golden, diff)
	}
}

// Each series has the name and the labels of the table, and each metric of the table has series.
func TestAnswersAreThoseOfTheTable(t *testing.T) {
	for _, classes := range []bool{false, true} {
		written := map[string]bool{}
		for _, line := range strings.Split(strings.TrimSpace(string(Append(nil, fullInput(t), classes))), "\n") {
			if name, ok := strings.CutPrefix(line, "# HELP "); ok {
				name, _, _ = strings.Cut(name, " ")
				if written[name] {
					t.Errorf("%s begins twice", name)
				}
				written[name] = true
				continue
			}
			if strings.HasPrefix(line, "#") {
				continue
			}
			name, labels := seriesOf(t, line)
			var f *Family
			for i := range families {
				if families[i].Name == name || families[i].Type == "histogram" && strings.HasPrefix(name, families[i].Name+"_") {
					f = &families[i]
				}
			}
			if f == nil {
				t.Errorf("%s is not in the table", line)
				continue
			}
			if want := f.Labels; f.Type != "histogram" && !slices.Equal(labels, want) {
				t.Errorf("%s: labels %q, want %q", line, labels, want)
			}
		}
		for _, f := range families {
			if want := (classes || !f.Classes) && f.Name != "memcached_agent_recommendation_absent"; written[f.Name] != want {
				t.Errorf("%s is written: %t, with classes %t", f.Name, written[f.Name], classes)
			}
			if f.Help == "" || !slices.Contains([]string{"counter", "gauge", "histogram"}, f.Type) {
				t.Errorf("%+v", f)
			}
		}
	}
}

func seriesOf(t *testing.T, line string) (name string, labels []string) {
	t.Helper()
	series, _, ok := strings.Cut(line, " ")
	if !ok {
		t.Errorf("no value: %s", line)
	}
	name, rest, _ := strings.Cut(series, "{")
	for _, pair := range strings.Split(strings.TrimSuffix(rest, "}"), ",") {
		if label, _, ok := strings.Cut(pair, "="); ok {
			labels = append(labels, label)
		}
	}
	return name, labels
}

func TestWithoutMemcachedTheAgentAnswers(t *testing.T) {
	in := fullInput(t)
	in.Reading, in.Process = nil, (&ProcessReader{Proc: t.TempDir()}).Read(1)
	got := string(Append(nil, in, true))
	if !strings.Contains(got, "\nmemcached_up 0\n") || !strings.Contains(got, "\nmemcached_agent_ready 0\n") {
		t.Error("no answer of the agent")
	}
	for _, name := range []string{"memcached_version", "memcached_current_items", "memcached_process", "memcached_agent_slab", "NaN"} {
		if strings.Contains(got, name) {
			t.Errorf("%s of a memcached that does not answer", name)
		}
	}
}

func TestWithoutARecommendationTheReasonIsWritten(t *testing.T) {
	for want, change := range map[sizing.Reason]func(*Input){
		sizing.Updating: func(in *Input) { in.Serving = false },
		sizing.NoData:   func(in *Input) { in.Size = nil },
		sizing.Observing: func(in *Input) {
			in.Size = &sizing.Report{Recommendation: sizing.Recommendation{Reason: sizing.Observing}}
		},
	} {
		in := fullInput(t)
		change(in)
		got := string(Append(nil, in, false))
		if !strings.Contains(got, `memcached_agent_recommendation_absent{reason="`+string(want)+`"} 1`) || strings.Contains(got, "memcached_agent_recommended_memory_bytes") {
			t.Errorf("%s: %s", want, got)
		}
	}
}

func TestReadingForgetsWhatMemcachedNoLongerReports(t *testing.T) {
	in := fullInput(t)
	s := server{"stats": {{"version", "1.6.18"}, {"curr_items", "7"}, {"curr_connections", "many"}}, "stats settings": {{"lru_crawler", "no"}, {"lru_crawler_sleep", "9"}},
		"stats slabs": {{"63:chunk_size", "96"}, {"0:chunk_size", "1"}, {"900:chunk_size", "1"}, {"x:chunk_size", "1"}}, "stats items": {}}
	if err := in.Reading.Read(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got := string(Append(nil, in, true))
	for _, want := range []string{"\nmemcached_current_items 7\n", `memcached_version{version="1.6.18"} 1`, `memcached_slab_chunk_size_bytes{slab="63"} 96`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, former := range []string{`slab="5"`, `slab="12"`, `slab="0"`, `slab="900"`, "memcached_limit_bytes", "memcached_current_connections", "memcached_lru_crawler_sleep", "memcached_lru_crawler_enabled"} {
		if strings.Contains(got, former) {
			t.Errorf("%s", former)
		}
	}
	delete(s, "stats items")
	if err := in.Reading.Read(t.Context(), s); err == nil {
		t.Error("no error")
	}
}

func TestEvictionAgeIsThatOfClassesThatEvictNow(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := &Reading{}
	age := func(after time.Duration, evicted ...string) float64 {
		s := server{"stats": {}, "stats settings": {}, "stats slabs": {}}
		for i, count := range evicted {
			s["stats items"] = append(s["stats items"], [2]string{fmt.Sprintf("items:%d:evicted", i+1), count},
				[2]string{fmt.Sprintf("items:%d:evicted_time", i+1), fmt.Sprint(100 * (i + 1))})
		}
		if err := r.Read(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		now = now.Add(after)
		return r.EvictionAge(now)
	}
	if got := age(0, "0", "0", "0"); !math.IsNaN(got) {
		t.Errorf("%v without evictions", got)
	}
	if got := age(time.Minute, "0", "5", "5"); got != 200 {
		t.Errorf("%v, want that of class 2", got)
	}
	if got := age(4*time.Minute, "0", "5", "6"); got != 200 {
		t.Errorf("%v, want that of class 2 as well", got)
	}
	if got := age(4*time.Minute, "0", "5", "6"); got != 300 {
		t.Errorf("%v, want that of class 3, since class 2 evicts no more", got)
	}
	if got := age(4*time.Minute, "0", "5", "6"); !math.IsNaN(got) {
		t.Errorf("%v long after the last eviction", got)
	}
	if got := age(time.Minute, "0", "5", "1"); !math.IsNaN(got) {
		t.Errorf("%v after a restart, in which no more were evicted", got)
	}
}

func TestSlabBytesAddUpToThePages(t *testing.T) {
	requested, overhead, free := slabBytes(read(t, server{"stats": {}, "stats settings": {},
		"stats slabs": {{"total_malloced", "2097152"}, {"1:chunk_size", "96"}, {"1:used_chunks", "1000"}, {"2:chunk_size", "120"}, {"2:used_chunks", "10"}},
		"stats items": {{"items:1:mem_requested", "80000"}}}))
	if requested != 80000 || overhead != 96*1000+120*10-80000 || requested+overhead+free != 2<<20 {
		t.Errorf("requested %v, overhead %v, free %v", requested, overhead, free)
	}
}

func TestProbesAreCumulative(t *testing.T) {
	var p Probes
	for _, d := range []time.Duration{50 * time.Microsecond, 51 * time.Microsecond, time.Minute} {
		p.Add(d)
	}
	w := &writer{}
	p.write(w, "d")
	for _, want := range []string{`d_bucket{le="5e-05"} 1`, `d_bucket{le="0.0001"} 2`, `d_bucket{le="0.1"} 2`, `d_bucket{le="+Inf"} 3`, "d_sum 60.000101", "d_count 3"} {
		if !strings.Contains(string(w.text), want+"\n") {
			t.Errorf("no %q in\n%s", want, w.text)
		}
	}
}

// A label's value is data of others: memcached's version, which an image decides.
func FuzzLabel(f *testing.F) {
	for _, value := range []string{"", "1.6.45", `a"b`, `\`, "a\nb", `\n`, "\xff", "}{,=", "\u2028"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		text, ok := strings.CutPrefix(label("version", value), `version="`)
		if !ok || strings.Contains(text, "\n") || !utf8.ValidString(text) {
			t.Fatalf("%q", text)
		}
		var back strings.Builder
		for text != `"` {
			if text == "" {
				t.Fatal("no end")
			}
			r, size := utf8.DecodeRuneInString(text)
			text = text[size:]
			switch {
			case r == '"':
				t.Fatalf("%q ends early", value)
			case r == '\\' && strings.HasPrefix(text, "n"):
				r, text = '\n', text[1:]
			case r == '\\':
				if text[0] != '\\' && text[0] != '"' {
					t.Fatalf("unknown escape before %q", text)
				}
				r, text = rune(text[0]), text[1:]
			}
			back.WriteRune(r)
		}
		if want := strings.ToValidUTF8(value, "\uFFFD"); back.String() != want {
			t.Errorf("%q, want %q", back.String(), want)
		}
	})
}

// Whatever memcached answers, an answer has only lines that Prometheus reads.
func FuzzReading(f *testing.F) {
	f.Add("version", "1.6.45", "items:1:number", "5")
	f.Add("curr_items", "1e400", "items::number", "NaN")
	f.Add("uptime", "-1", "items:1:2:3", "+Inf")
	f.Fuzz(func(t *testing.T, name, value, item, number string) {
		r := &Reading{}
		if err := r.Read(t.Context(), server{"stats": {{name, value}}, "stats settings": {{name, number}}, "stats slabs": {{item, number}}, "stats items": {{item, number}}}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSuffix(string(Append(nil, &Input{Reading: r}, true)), "\n"), "\n") {
			if strings.HasPrefix(line, "# ") {
				continue
			}
			var got float64
			if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &got); err != nil || !strings.HasPrefix(line, "memcached_") {
				t.Errorf("%q: %v", line, err)
			}
		}
	})
}

func TestProcessOfThisTest(t *testing.T) {
	r := ProcessReader{Proc: "/proc"}
	if p := r.Read(0); !math.IsNaN(p.StartTime) {
		t.Errorf("without a process: %+v", p)
	}
	p := r.Read(os.Getpid())
	if p.ResidentBytes < 1<<20 || p.VirtualBytes < p.ResidentBytes || p.OpenFDs < 3 || p.MaxFDs < p.OpenFDs || p.MaxVirtualBytes < p.VirtualBytes ||
		p.CPUSeconds < 0 || math.Abs(p.StartTime-float64(time.Now().Unix())) > 600 || !(p.ReceivedBytes >= 0 && p.SentBytes >= 0) {
		t.Errorf("%+v", p)
	}
	if again := r.Read(os.Getpid()); again.StartTime != p.StartTime || again.CPUSeconds < p.CPUSeconds {
		t.Errorf("%+v, then %+v", p, again)
	}
}

// An answer with 40 slab classes costs less than 1 ms. The benchmark prints the figures.
func BenchmarkAppend(b *testing.B) {
	full := fullServer()
	for _, classes := range []bool{false, true} {
		s := server{"stats": full["stats"], "stats settings": full["stats settings"], "stats slabs": {{"total_malloced", "1"}}}
		for n := 1; n <= 40; n++ {
			for name := range slots[slabs] {
				s["stats slabs"] = append(s["stats slabs"], [2]string{fmt.Sprintf("%d:%s", n, name), "123456"})
			}
			for name := range slots[items] {
				s["stats items"] = append(s["stats items"], [2]string{fmt.Sprintf("items:%d:%s", n, name), "123456"})
			}
		}
		b.Run(fmt.Sprintf("classes=%t", classes), func(b *testing.B) {
			in := fullInput(b)
			text := Append(nil, in, classes)
			for b.Loop() {
				if err := in.Reading.Read(b.Context(), s); err != nil {
					b.Fatal(err)
				}
				text = Append(text[:0], in, classes)
			}
			b.ReportMetric(float64(len(text)), "bytes")
			b.ReportMetric(float64(strings.Count(string(text), "\n")-strings.Count(string(text), "\n#")), "series")
		})
	}
}

// An agent reports every phase and every result that its status can have.
func TestAllPhasesAndResultsHaveSeries(t *testing.T) {
	files, err := parser.ParseDir(token.NewFileSet(), "../wire", nil, 0) //nolint:staticcheck // the constants, without their types
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files["wire"].Files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); ok && (kind.Name == "Phase" || kind.Name == "StartResult") && len(spec.Values) == 1 {
				found = append(found, strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`))
			}
			return true
		})
	}
	var listed []string
	for _, phase := range wire.Phases {
		listed = append(listed, string(phase))
	}
	for _, result := range wire.StartResults {
		listed = append(listed, string(result))
	}
	slices.Sort(found)
	slices.Sort(listed)
	if !slices.Equal(found, listed) || len(found) < 10 {
		t.Errorf("the lists have %q, the constants are %q", listed, found)
	}
}
