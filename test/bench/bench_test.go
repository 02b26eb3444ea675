package main

import (
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/load"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// sample is a run of 60 s with the change at 20 s, on three shards with 100 gets a
// bucket each. The upgrade takes 4 s, shard 1 is out during the last 2 of them,
// and then it misses half for so many seconds.
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

func TestTheFiguresOfARunAreThoseOfTheTimeAfterTheChange(t *testing.T) {
	f := sample(variants[0], 6).figures()
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
		{"seconds until the ratio is back", f.back.Seconds(), 10},
		{"noise", f.noise.Seconds, 0},
		{"seconds of noise", f.noiseFor.Seconds(), 9},
		{"seconds after the change", f.ran.Seconds(), 39.5},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestARatioThatDoesNotComeBackIsTold(t *testing.T) {
	f := sample(variants[1], 60).figures()
	if f.isBack || math.Abs(f.last-5./6) > 1e-9 {
		t.Errorf("back %t, it came to %v", f.isBack, f.last)
	}
	table := document{results: []result{sample(variants[1], 60)}}.terminal()
	if want := "not within 40 s: 83.3 %"; !strings.Contains(table, want) {
		t.Errorf("the table does not say %q:\n%s", want, table)
	}
}

func TestTheTableComparesWithTheFirst(t *testing.T) {
	d := document{results: []result{sample(variants[0], 0), sample(variants[1], 6)}}
	d.results[1].kept = 0
	for _, want := range []string{
		"| | this operator | StatefulSet |\n|---|---|---|\n",
		"| 0.7 s | 1.7 s (2.5 ×) |",
		"| 400 | 1,000 |",
		"| 30,000 of 30,000 | 0 of 30,000 |",
		"| after 4 s | after 10 s (2.5 ×) |",
		"| 480 | 480 |", // the same is no ratio
		"hits lost in 9 s without a change | 0.00 s | 0.00 s |",
	} {
		if got := d.markdown(); !strings.Contains(got, want) {
			t.Errorf("the table does not say %q:\n%s", want, got)
		}
	}
	lines := strings.Split(strings.TrimRight(d.terminal(), "\n"), "\n")
	for _, line := range lines[1:] {
		if a, b := []rune(lines[0]), []rune(line); len(a) != len(b) {
			t.Errorf("the columns of %q do not stand under those of %q", line, lines[0])
		}
	}
}

func TestErrorsBeforeTheChangeAreADisturbance(t *testing.T) {
	d := document{results: []result{sample(variants[0], 0), sample(variants[1], 0)}}
	if n := d.disturbed(); n != 0 {
		t.Errorf("%d errors of the changes count as a disturbance", n)
	}
	d.results[1].report.Shards[2][10].Errors = 7
	if n := d.disturbed(); n != 7 {
		t.Errorf("%d errors, want the 7 before the change", n)
	}
}

func TestARatioIsToldWhereItMeansSomething(t *testing.T) {
	for _, c := range []struct {
		value, first float64
		want         string
	}{
		{10.7, 0.4, " (27 ×)"}, {12, 5, " (2.4 ×)"}, {3, 6, " (0.5 ×)"}, {5, 5, ""}, {10, 0, ""}, {0, 10, ""}, {10, 0.04, ""}, {10, -1, ""},
	} {
		if got := times(c.value, c.first); got != c.want {
			t.Errorf("%v to %v is told as %q, want %q", c.value, c.first, got, c.want)
		}
	}
}

func TestTheDocumentTellsHowItCameAbout(t *testing.T) {
	o, err := parse([]string{"-from", "1.6.18", "-to", "1.6.45", "-keys", "20000"})
	if err != nil {
		t.Fatal(err)
	}
	d := document{
		options: o, machine: "A machine.", date: noon, args: []string{"-from", "1.6.18", "-keys", "20000"},
		results: []result{sample(variants[0], 0), sample(variants[1], 6), sample(variants[2], 6)},
	}
	text, err := d.text()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"from 1.6.18 to 1.6.45", "A machine.", "2026-01-01", "`make bench-upgrade ARGS='-from 1.6.18 -keys 20000'`",
		"60,000 ÷ 3,000 = 20 s", "ends after 250 ms", "(bench-upgrade.svg)", "3,000 operations a second on 3 shards",
		variants[0].change, variants[1].change, variants[2].change,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "<no value>") {
		t.Errorf("a value is missing:\n%s", text)
	}
}

func TestOptionsThatCannotBeMeasuredAreRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"SameVersion": {"-from", "1.6.45", "-to", "1.6.45"},
		"UnknownOnly": {"-to", "1.6.45", "-only", "daemonset"},
		"TooShort":    {"-to", "1.6.45", "-before", "1s"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestALineOfTheChartIsTheBucketsAfterTheChangeInSeconds(t *testing.T) {
	s := sample(variants[0], 0).series()
	if first, last := s.ratio[0], s.ratio[len(s.ratio)-1]; first.X != -9.75 || last.X != 39.25 {
		t.Errorf("the line goes from %v to %v s, want the middles of the buckets from -10 s to the end of what is compared", first.X, last.X)
	}
	for i, p := range s.ratio {
		out := p.X > 2 && p.X < 4
		if want := map[bool]float64{false: 100, true: 200. / 3}[out]; math.Abs(p.Y-want) > 1e-9 {
			t.Errorf("at %v s the ratio is %v %%, want %v", p.X, p.Y, want)
		}
		if want := map[bool]float64{false: 0, true: 240}[out]; s.errors[i] != (report.Point{X: p.X, Y: want}) {
			t.Errorf("at %v s there are %v errors a second, want %v", p.X, s.errors[i].Y, want)
		}
	}
}

func TestTheChartIsDrawnFromItsSeries(t *testing.T) {
	c := chart{title: "A & B", series: []series{
		{name: "one", notes: []string{"kept <all>"}, ratio: []report.Point{{X: -10, Y: 100}, {X: 0, Y: 52}, {X: 30, Y: 100}}, errors: []report.Point{{X: 0, Y: 0}, {X: 30, Y: 1234}}},
		{name: "two", ratio: []report.Point{{X: -10, Y: 100}, {X: 60, Y: 90}}, errors: []report.Point{{X: -10, Y: 0}, {X: 60, Y: 0}}},
	}}
	x, ratio, errs := c.axes()
	if x.From != -10 || x.To != 60 || ratio.From != 40 || ratio.To != 100 || errs.To != 1500 {
		t.Errorf("axes: time %v to %v, ratio from %v, errors to %v", x.From, x.To, ratio.From, errs.To)
	}
	svg := c.svg()
	for _, want := range []string{
		"A &amp; B", "kept &lt;all&gt;", ">+20<", ">0<",
		report.Path(c.series[0].ratio, x, ratio), report.Path(c.series[0].errors, x, errs), report.Path(c.series[1].ratio, x, ratio),
	} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if labels := c.labels(ratio); labels[1]-labels[0] < 2*lineHeight {
		t.Errorf("the labels overlap: %v", labels)
	}
}

func TestAMemcachedIsSettledWhenEveryShardIsOfTheVersion(t *testing.T) {
	settled := func(change func(*v1alpha1.Memcached)) error {
		m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
		m.Status.ObservedGeneration = 2
		for ordinal := range shards {
			m.Status.Shards = append(m.Status.Shards, v1alpha1.ShardStatus{
				Name: []string{"cache-0", "cache-1", "cache-2"}[ordinal], Version: "1.6.45", Current: true, Ready: true, Start: v1alpha1.StartWarm,
			})
		}
		m.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue},
			{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse},
			{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse},
		}
		change(m)
		return settledMemcached(m, "1.6.45")
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Memcached)
		says   string
	}{
		"Settled":    {func(*v1alpha1.Memcached) {}, ""},
		"NotSeen":    {func(m *v1alpha1.Memcached) { m.Generation = 3 }, "not seen"},
		"OldVersion": {func(m *v1alpha1.Memcached) { m.Status.Shards[2].Version = "1.6.38" }, "1.6.38"},
		"NotCurrent": {func(m *v1alpha1.Memcached) { m.Status.Shards[1].Current = false }, "cache-1"},
		"NotReady":   {func(m *v1alpha1.Memcached) { m.Status.Shards[0].Ready = false }, "cache-0"},
		"Missing":    {func(m *v1alpha1.Memcached) { m.Status.Shards = m.Status.Shards[:2] }, "cache-2"},
		"UnderWay": {func(m *v1alpha1.Memcached) {
			m.Status.Conditions[1] = metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "UpdatingShard", Message: "shard 2 of 3"}
		}, "shard 2 of 3"},
	} {
		err := settled(c.change)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.says)
		}
	}
}
