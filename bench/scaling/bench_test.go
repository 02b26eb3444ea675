package scaling

import (
	"flag"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/test/bench/load"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// sample returns a run of 100 s with 100 gets per bucket. Each change takes 10 s, and clients get the list in the last 5 of them. In this
// time, some gets are misses and some are stale.
func sample(v variant, misses, stale int) result {
	r := result{variant: v, report: load.Report{Began: noon, Every: load.Every, Shards: make([][]load.Counts, 1)}}
	for i, begins := range []float64{20, 60} {
		r.changes = append(r.changes, change{from: few + i, to: many - i, runs: at(begins - 10), begins: at(begins), published: at(begins + 5),
			switched: at(begins + 10), closed: at(begins + 10), measured: at(begins + 15), lasting: int64(stale)})
	}
	for i := range 200 {
		c := load.Counts{Gets: 100, Hits: 100, Latencies: []time.Duration{time.Millisecond}}
		for _, change := range r.changes {
			if t := r.report.At(i); !t.Before(change.begins) && t.Before(change.published) {
				c.Latencies[0] = 3 * time.Millisecond
			} else if !t.Before(change.published) && t.Before(change.switched) {
				c.Hits, c.Misses, c.Stale, c.Old, c.Oldest = 100-misses, misses, stale, stale/2, time.Duration(stale)*time.Second
			}
		}
		r.report.Shards[0] = append(r.report.Shards[0], c)
	}
	return r
}

func TestFiguresAreThoseOfOneChange(t *testing.T) {
	r := sample(warm, 4, 2)
	r.changes[1].memory = memory{most: 50 * leastMoved, end: leastMoved, moved: leastMoved}
	for n := range r.changes {
		f := r.figures(n)
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"hits lost: 10 buckets of 4", f.loss.Hits, 40},
			{"the same at 200 hits a second", f.loss.Seconds, 0.2},
			{"ratio while lists are mixed", f.lowest, 0.96},
			{"stale reads", float64(f.stale), 20},
			{"old ones", float64(f.old), 10},
			{"oldest of them", f.oldest.Seconds(), 2},
			{"seconds until the list", f.untilList.Seconds(), 5},
			{"milliseconds while items are copied", 1000 * f.p99[1].Seconds(), 3},
			{"milliseconds while lists are mixed", 1000 * f.p99[2].Seconds(), 1},
			{"bytes of the agents", f.bytes, []float64{0, 50}[n]},
			{"bytes at the end", f.atRest, []float64{0, 1}[n]},
		} {
			if math.Abs(c.got-c.want) > 1e-9 {
				t.Errorf("%d → %d, %s: %v, want %v", r.changes[n].from, r.changes[n].to, c.what, c.got, c.want)
			}
		}
	}
}

// documentOf returns a document with all variants.
func documentOf(t *testing.T, of func(v variant) result) document {
	t.Helper()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	o := optionsOf(flags)
	if err := flags.Parse([]string{"-version", "1.6.45"}); err != nil {
		t.Fatal(err)
	}
	runs, err := o.runs()
	if err != nil || len(runs) != 2 || len(runs[1].variants) != 1 || runs[1].rounds != 1 || runs[1].keys != 1_000_000 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	d := document{options: runs[0]}
	for _, v := range d.options.variants {
		d.results = append(d.results, []result{of(v)})
	}
	return d
}

func TestMissedTargetsAreReported(t *testing.T) {
	meets := func(v variant) result {
		if v.published == nil {
			return sample(v, 20, 10)
		}
		return sample(v, 1, 0)
	}
	if err := documentOf(t, meets).missed(0); err != nil {
		t.Errorf("no target is missed: %v", err)
	}
	for want, change := range map[string]func(r *result){
		"this operator: 3 keys have an old value for good":                    func(r *result) { r.changes[0].lasting = 3 },
		"list read at once: the hit ratio is 94.0% of the one before":         func(r *result) { *r = sample(r.variant, 6, 0) },
		"this operator: 30 stale reads, want a fifth of 100":                  func(r *result) { *r = sample(r.variant, 1, 3) },
		"this operator: the agents use 65 bytes for each":                     func(r *result) { r.changes[0].memory = memory{most: 65 * leastMoved, moved: leastMoved} },
		"this operator: the p99 latency is 3.0 times as long while items are": func(r *result) { r.changes[0].memory = memory{most: 1, moved: leastMoved} },
	} {
		d := documentOf(t, meets)
		for i := range d.results {
			if strings.HasPrefix(want, d.results[i][0].variant.name) {
				change(&d.results[i][0])
			}
		}
		if err := d.missed(0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestDocumentHasBothChangesAndAllVariants(t *testing.T) {
	d := documentOf(t, func(v variant) result { return sample(v, 20, 10) })
	large := d
	large.options.keys, large.options.variants, large.results = 1_000_000, further, [][]result{{sample(quick, 1, 0)}}
	result := documents{d, large}.result("A machine.")
	text, err := Benchmark.Document(result, "A footer.")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 3 → 4 shards of 20,000 keys | this operator | list read at once | mode Cold | StatefulSet |", "| 4 → 3 shards |", "| 3 → 4 shards of 1,000,000 keys | list read at once |",
		"With 1,000,000 keys per shard there was one round.", "| p99 latency while items are copied | 3.0 ms | 3.0 ms |  |  |", "(bench-scaling.svg)", "A footer.", statefulSet.does,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document does not say %q:\n%s", want, text)
		}
	}
	if result.Missed == nil {
		t.Error("no target is missed")
	}
	if stale := result.Chart.Panels[0].Series; len(stale) != 3 || stale[0].Name != warm.name {
		t.Errorf("the chart shows %+v", stale)
	}
}

func TestPointsOfBothChangesFollowEachOther(t *testing.T) {
	lines := sample(warm, 4, 2).points(100*time.Second, 10*time.Second)
	// 10 s before the first list, and as many before the second one.
	all := lines[0]
	if first, last := all[0].X, all[len(all)-1].X; first != -9.75 || last != 109.75 {
		t.Errorf("the line goes from %v to %v s", first, last)
	}
	for i, p := range all {
		is := p.X > 0 && p.X < 5 || p.X > 100 && p.X < 105
		if !is && p.Y+lines[1][i].Y+lines[2][i].Y != 100 || is && (p.Y != 2 || lines[1][i].Y != 4 || lines[2][i].Y != 96) {
			t.Errorf("at %v s: %v old and %v stale reads per second and a hit ratio of %v%%", p.X, p.Y, lines[1][i].Y, lines[2][i].Y)
		}
		if p.X > 10 && p.X < 90 {
			t.Errorf("there is a point at %v s, which neither change has", p.X)
		}
	}
}

func TestEachClientGetsTheListAtATimeOfItsOwn(t *testing.T) {
	moved := "a"
	for ringOf(many).Shard([]byte(moved)) != few {
		moved += "a"
	}
	for began, want := range map[time.Duration][2]int{-time.Minute: {0, 0}, 30 * time.Second: {200, 800}, time.Minute: {1000, 1000}} {
		n := 0
		synctest.Test(t, func(*testing.T) { // where no time passes
			var l lists
			l.change(few, many, time.Now().Add(-began), time.Minute)
			for range 1000 {
				if l.shard(moved) == few {
					n++
				}
			}
		})
		if n < want[0] || n > want[1] {
			t.Errorf("%s after clients begin to get the list, %d of 1,000 operations use it, want %d", began, n, want)
		}
	}
	if share := moving(); share < 0.2 || share > 0.3 {
		t.Errorf("%v of the keys move", share)
	}
}

func TestOneVariantCanBeMeasured(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	o := optionsOf(flags)
	if err := flags.Parse([]string{"-only", "list-read-at-once", "-keys", "1000000"}); err != nil {
		t.Fatal(err)
	}
	if runs, err := o.runs(); err != nil || len(runs) != 1 || len(runs[0].variants) != 1 || runs[0].variants[0].name != quick.name {
		t.Errorf("%+v, %v", runs, err)
	}
}

func TestOptionsThatCannotBeMeasuredAreRejected(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-keys", "many"}, {"-mixed", "1s"}, {"-before", "1s"}, {"-only", "none"}} {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		o := optionsOf(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		if _, err := o.runs(); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
