package upgrade

import (
	"flag"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/test/bench/load"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// sample returns a run of 60 s with the change at 20 s, on three shards with 100 gets per bucket each. The upgrade takes
// 4 s. Shard 1 is unavailable during the last 2 of them, and then misses half for cold seconds.
func sample(v variant, cold float64) result {
	r := load.Report{Began: noon, Every: load.Every, Shards: make([][]load.Counts, shards)}
	for shard := range r.Shards {
		for i := range 120 {
			c := load.Counts{Gets: 100, Hits: 100, Silence: 10 * time.Millisecond}
			seconds := r.At(i).Sub(noon).Seconds()
			switch {
			case shard != 1 || seconds < 22:
			case seconds < 24:
				c.Hits, c.Errors = 0, 120
			case seconds < 24+cold:
				c.Hits, c.Misses = 50, 50
			}
			if shard == 1 && seconds == 24 {
				c.Silence = 2 * time.Second
			}
			r.Shards[shard] = append(r.Shards[shard], c)
		}
	}
	return result{variant: v, report: r, change: at(20), took: 4 * time.Second, until: at(59.5), unread: 30_000, kept: 30_000}
}

func TestFiguresSummarizeTheTimeAfterTheChange(t *testing.T) {
	f := sample(upgrade.variants[0], 6).figures()
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"hit ratio before", f.before, 1},
		{"hits lost: 4 buckets of 100, then 12 of 50", f.loss.Hits, 1000},
		{"the same at 600 hits a second", f.loss.Seconds, 1000. / 600},
		{"lowest ratio", f.lowest, 2. / 3},
		{"errors", float64(f.errors), 480},
		{"longest silence", f.silence.Seconds(), 2},
		{"seconds until the ratio is back", f.recovery.Seconds(), 10},
		{"noise", f.noise.Seconds, 0},
		{"seconds of noise", f.noiseFor.Seconds(), 9},
		{"seconds after the change", f.ran.Seconds(), 39.5},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestRatioThatDoesNotRecoverIsReported(t *testing.T) {
	f := sample(upgrade.variants[2], 60).figures()
	if f.recovered || math.Abs(f.last-5./6) > 1e-9 {
		t.Errorf("recovered %t, last ratio %v", f.recovered, f.last)
	}
	table := document{options: options{kind: upgrade}, results: [][]result{{sample(upgrade.variants[2], 60)}}}.table().Terminal()
	if want := "not within 40 s in 1 of 1 rounds: 83.3%"; !strings.Contains(table, want) {
		t.Errorf("the table does not say %q:\n%s", want, table)
	}
}

func TestTableComparesWithTheFirstVariant(t *testing.T) {
	d := document{options: options{kind: upgrade}, results: [][]result{{sample(upgrade.variants[0], 0)}, {sample(upgrade.variants[2], 6)}}}
	d.results[1][0].kept = 0
	for _, want := range []string{
		"|  | this operator | StatefulSet |\n|---|---:|---:|\n",
		"| 0.7 s | 1.7 s (2.5 ×) |",
		"| 400 | 1,000 |",
		"| 100.0% | 0.0% |",
		"| after 4 s | after 10 s (2.5 ×) |",
		"| 480 | 480 |", // the same is no ratio
		"hits lost in 9 s without a change | 0.00 s | 0.00 s |",
	} {
		if got := d.table().Markdown(); !strings.Contains(got, want) {
			t.Errorf("the table does not say %q:\n%s", want, got)
		}
	}
	lines := strings.Split(strings.TrimRight(d.table().Terminal(), "\n"), "\n")
	for _, line := range lines[1:] {
		if a, b := []rune(lines[0]), []rune(line); len(a) != len(b) {
			t.Errorf("the columns of %q are not aligned with those of %q", line, lines[0])
		}
	}
}

func TestRoundsAreSummarizedByMedianAndRange(t *testing.T) {
	d := document{options: options{kind: upgrade}, results: [][]result{{sample(upgrade.variants[0], 12), sample(upgrade.variants[0], 0), sample(upgrade.variants[0], 6)}}}
	for _, want := range []string{"| 1.7 s [0.7 s to 2.7 s] |", "| after 10 s [4 s to 16 s] |", "| 480 |"} {
		if got := d.table().Markdown(); !strings.Contains(got, want) {
			t.Errorf("the table does not say %q:\n%s", want, got)
		}
	}
	if f := medianOf(d.results[0]).figures(); f.recovery != 10*time.Second {
		t.Errorf("the median round recovered after %s", f.recovery)
	}
}

// parsed returns the options of a command line.
func parsed(t *testing.T, k kind, args ...string) options {
	t.Helper()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	o := k.options(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return *o
}

func TestDocumentDescribesTheRun(t *testing.T) {
	for _, c := range []struct {
		benchmark report.Benchmark
		kind      kind
		args      []string
		want      []string
	}{
		{Upgrade, upgrade, []string{"-from", "1.6.18", "-to", "1.6.45", "-keys", "20000"}, []string{
			"from 1.6.18 to 1.6.45", "60,000 ÷ 3,000 = 20 s", "times out after 250ms",
			"(bench-upgrade.svg)", "3,000 operations per second on 3 shards", "\nA footer.\n", "|  | this operator |",
		}},
		{Handover, eviction, []string{"-items", "3000,1500000", "-to", "1.6.45"}, []string{
			"# Eviction of all pods under load", "(bench-handover.svg)", "contain 3,000 or 1,500,000 items with values of 500 bytes", "memcached 1.6.45 with the same arguments, 64 or 421 MiB",
			"| 3,000 items | this operator | mode Available | mode Disabled | StatefulSet | Deployments |", "With 1,500,000 items there was one round.",
			"| 1,500,000 items | this operator | mode Available | StatefulSet |\n", "duration of the eviction | 4.0 s |", "p99 latency from the change until it is done",
		}},
	} {
		runs, err := parsed(t, c.kind, c.args...).runs()
		if err != nil {
			t.Fatal(err)
		}
		var all documents
		for _, o := range runs {
			d := document{options: o}
			for i, v := range o.kind.variants {
				d.results = append(d.results, []result{sample(v, float64(6*i))})
			}
			all = append(all, d)
		}
		used := map[int]string{}
		for _, v := range c.kind.variants {
			if color, known := colors[v.name]; !known || used[color] != "" {
				t.Errorf("%s has no color of its own: that of %q", v.name, used[color])
			}
			used[colors[v.name]] = v.name
			c.want = append(c.want, v.does)
		}
		text, err := c.benchmark.Document(all.result("A machine."), "A footer.")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("the document does not say %q:\n%s", want, text)
			}
		}
	}
}

func TestShardsHaveMemoryForAllItems(t *testing.T) {
	for _, c := range []struct {
		options options
		want    []int
	}{
		{parsed(t, upgrade), []int{64}},                    // as the operator's default
		{parsed(t, eviction), []int{99, 302}},              // 333,333 items of 600 bytes, a quarter more, and 64 for the load
		{parsed(t, eviction, "-items", "3000"), []int{64}}, // less than 1 MiB more
	} {
		runs, err := c.options.runs()
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, o := range runs {
			got = append(got, o.mebibytes())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s items of %d bytes: %d MiB, want %d", c.options.numbers, c.options.bytes, got, c.want)
		}
	}
}

func TestOptionsThatCannotBeMeasuredAreRejected(t *testing.T) {
	for _, args := range [][]string{{"-from", "1.6.45"}, {"-before", "1s"}, {"-items", "1"}, {"-rounds", "0"}} {
		o := parsed(t, upgrade, append(args, "-to", "1.6.45")...)
		if _, err := o.runs(); err == nil && o.check() == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestPointsAreTheBucketsOverTheSecondsSinceTheChange(t *testing.T) {
	ratio, errors := sample(upgrade.variants[0], 0).points()
	if first, last := ratio[0], ratio[len(ratio)-1]; first.X != -9.75 || last.X != 39.25 {
		t.Errorf("the line goes from %v to %v s, want the middles of the buckets from -10 s to the end of what is compared", first.X, last.X)
	}
	for i, p := range ratio {
		out := p.X > 2 && p.X < 4
		if want := map[bool]float64{false: 100, true: 200. / 3}[out]; math.Abs(p.Y-want) > 1e-9 {
			t.Errorf("at %v s the ratio is %v%%, want %v", p.X, p.Y, want)
		}
		if want := map[bool]float64{false: 0, true: 240}[out]; errors[i] != (report.Point{X: p.X, Y: want}) {
			t.Errorf("at %v s there are %v errors a second, want %v", p.X, errors[i].Y, want)
		}
	}
}
