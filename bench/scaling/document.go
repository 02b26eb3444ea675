package scaling

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/bench/load"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
)

const (
	// shownBefore is how much of the time before clients get the first list the chart shows.
	shownBefore = 10 * time.Second
	// leastMoved is the number of items below which the agents' memory per item would be that of other things.
	leastMoved = 100_000
)

// figures summarize a change of a variant.
type figures struct {
	loss load.Loss
	// lowest is the hit ratio from the publication of the list to the end of the change, as a share of the one before.
	lowest        float64
	stale, old    int
	oldest        time.Duration
	lasting       int64
	errors        int
	untilList     time.Duration
	untilClosed   time.Duration
	p99           [3]time.Duration // before, until the list, and until all clients have it
	copies        bool             // items are copied before the list is published
	bytes, atRest float64          // of the agents per moved item: most, and at the end
}

func (r result) figures(n int) figures {
	c := r.changes[n]
	// A change can leave misses that are not those of the next one.
	before, change, mixed := load.Span{From: r.changes[0].runs, Until: r.changes[0].begins}, load.Span{From: c.begins, Until: c.measured}, load.Span{From: c.published, Until: c.switched}
	sum, is := r.report.Sum(change), r.report.Sum(load.Span{From: c.published, Until: c.closed})
	f := figures{
		loss: r.report.Loss(before, change), lowest: is.Ratio() / r.report.Sum(before).Ratio(),
		stale: sum.Stale, old: sum.Old, oldest: sum.Oldest, lasting: c.lasting, errors: sum.Errors,
		untilList: c.published.Sub(c.begins), untilClosed: c.closed.Sub(c.switched), copies: r.variant.published != nil,
	}
	for i, span := range []load.Span{{From: c.runs, Until: c.begins}, {From: c.begins, Until: c.published}, mixed} {
		f.p99[i] = r.report.Latency(span, 0.99)
	}
	if c.memory.moved >= leastMoved {
		f.bytes, f.atRest = float64(c.memory.most)/float64(c.memory.moved), float64(c.memory.end)/float64(c.memory.moved)
	}
	return f
}

// document reports a number of keys: the results of all rounds by variant.
type document struct {
	options options
	results [][]result
}

// documents are those of all numbers of keys. The chart is of the first one.
type documents []document

func (all documents) result(machine string) report.Result {
	var changes, keys []string
	var tables []report.Table
	var missed error
	failed := 0
	for _, d := range all {
		keys = append(keys, report.Number(d.options.keys))
		for n := range d.results[0][0].changes {
			tables = append(tables, d.table(n))
			missed = errors.Join(missed, d.missed(n))
		}
		for _, rounds := range d.results {
			for _, r := range rounds {
				failed += r.report.Sum(load.Span{From: r.changes[0].runs, Until: r.changes[0].begins}).Errors
			}
		}
	}
	d, warning := all[0], ""
	for _, v := range d.options.variants {
		changes = append(changes, fmt.Sprintf("- **%s**: %s.", v.name, v.does))
	}
	if failed > 0 {
		warning = report.Number(failed) + " operations failed before the changes: the machine was busy. Run the benchmark again when it is idle."
	}
	o, chart := d.options, d.chart()
	return report.Result{Machine: machine, Tables: tables, Chart: &chart, Warning: warning, Missed: missed, Values: map[string]any{
		"Changes": strings.Join(changes, "\n"), "Rounds": o.rounds, "Rate": report.Number(o.rate), "Keys": keys[0], "Further": strings.Join(keys[1:], " and "),
		"Clients": clients, "Mixed": report.Seconds(o.mixed, 0), "AtOnce": report.Seconds(atOnce, 0), "Version": o.version, "ValueSize": load.ValueSize,
		"Moved": report.Percent(moving(), 0), "DatabaseTime": load.DatabaseTime, "Timeout": load.Timeout, "Patience": load.Patience,
	}}
}

// moving returns the share of keys that another number of shards moves.
func moving() float64 {
	const keys = 100_000
	former, next, n := ringOf(few), ringOf(many), 0
	for i := range keys {
		if key := fmt.Appendf(nil, "%d", i); former.Shard(key) != next.Shard(key) {
			n++
		}
	}
	return float64(n) / keys
}

// table has a column for each variant, with the median and the range of all rounds of a change.
func (d document) table(n int) report.Table {
	c := d.results[0][0].changes[n]
	table := report.Table{{fmt.Sprintf("%d → %d shards of %s keys", c.from, c.to, report.Number(d.options.keys))}}
	if c.to < c.from {
		table[0][0] = fmt.Sprintf("%d → %d shards", c.from, c.to)
	}
	all := make([][]figures, len(d.results))
	for i, rounds := range d.results {
		table[0] = append(table[0], rounds[0].variant.name)
		for _, r := range rounds {
			all[i] = append(all[i], r.figures(n))
		}
	}
	add := func(label string, value func(figures) float64, format func(float64) string) {
		report.Add(&table, label, all, func(rounds []figures) string { return report.SpreadOf(rounds, value).Text(format) })
	}
	// Only variants that copy items have some figures.
	addCopies := func(label string, value func(figures) float64, format func(float64) string) {
		report.Add(&table, label, all, func(rounds []figures) string {
			if !rounds[0].copies {
				return ""
			}
			return report.SpreadOf(rounds, value).Text(format)
		})
	}
	seconds := func(n float64) string { return fmt.Sprintf("%.1f s", n) }
	milliseconds := func(n float64) string { return fmt.Sprintf("%.1f ms", n) }
	number := func(n float64) string { return report.Number(n) }
	percent := func(n float64) string { return report.Percent(n, 1) }
	bytes := func(n float64) string { return fmt.Sprintf("%.0f B", n) }
	p99 := func(i int) func(figures) float64 {
		return func(f figures) float64 { return float64(f.p99[i]) / float64(time.Millisecond) }
	}

	add("keys with an old value for good", func(f figures) float64 { return float64(f.lasting) }, number)
	add("stale reads", func(f figures) float64 { return float64(f.stale) }, number)
	add(fmt.Sprintf("those of values replaced %.0f s before or earlier", load.Old.Seconds()), func(f figures) float64 { return float64(f.old) }, number)
	add("the oldest value of them, replaced before", func(f figures) float64 { return f.oldest.Seconds() }, seconds)
	add("hits lost, in seconds of full traffic", func(f figures) float64 { return f.loss.Seconds }, seconds)
	add("hit ratio from the new list to the end, of the one before", func(f figures) float64 { return f.lowest }, percent)
	add("operations that failed after a retry", func(f figures) float64 { return float64(f.errors) }, number)
	add("p99 latency before", p99(0), milliseconds)
	addCopies("p99 latency while items are copied", p99(1), milliseconds)
	add("p99 latency while clients have either list", p99(2), milliseconds)
	add("from the change of the size to the new list", func(f figures) float64 { return f.untilList.Seconds() }, seconds)
	add("from the last client's switch to the end", func(f figures) float64 { return f.untilClosed.Seconds() }, seconds)
	if all[0][0].bytes > 0 {
		addCopies("memory of all agents per moved item", func(f figures) float64 { return f.bytes }, bytes)
		addCopies("the same after the end", func(f figures) float64 { return f.atRest }, bytes)
	}
	return table
}

// missed returns an error for each target that a change misses.
func (d document) missed(n int) (missed error) {
	miss := func(is bool, v variant, format string, args ...any) {
		if is {
			c := d.results[0][0].changes[n]
			missed = errors.Join(missed, fmt.Errorf("%d → %d, %s: %s", c.from, c.to, v.name, fmt.Sprintf(format, args...)))
		}
	}
	stale := func(f figures) float64 { return float64(f.stale) }
	spreads := map[string]report.Spread{}
	for _, rounds := range d.results {
		var all []figures
		for _, r := range rounds {
			all = append(all, r.figures(n))
		}
		v := rounds[0].variant
		spreads[v.name] = report.SpreadOf(all, stale)
		if v.published == nil {
			continue
		}
		of := func(value func(figures) float64) report.Spread { return report.SpreadOf(all, value) }
		lasting := of(func(f figures) float64 { return float64(f.lasting) }).High
		miss(lasting > 0, v, "%.0f keys have an old value for good", lasting)
		ratio := of(func(f figures) float64 { return f.lowest }).Median
		miss(v.atOnce && ratio < 0.95, v, "the hit ratio is %.1f%% of the one before, want 95%%", 100*ratio)
		if all[0].bytes == 0 {
			continue
		}
		before, copying := of(func(f figures) float64 { return float64(f.p99[0]) }).Median, of(func(f figures) float64 { return float64(f.p99[1]) }).Median
		miss(copying > 2*before, v, "the p99 latency is %.1f times as long while items are copied, want 2 at most", copying/before)
		bytes := of(func(f figures) float64 { return f.bytes }).Median
		miss(bytes > 64, v, "the agents use %.0f bytes for each moved item, want 64 at most", bytes)
	}
	if of, without := spreads[warm.name].Median, spreads[cold.name].Median; without > 0 {
		miss(of > without/5, warm, "%.0f stale reads, want a fifth of %.0f at most", of, without)
	}
	return missed
}

// medianOf returns the round with the median of the stale reads of both changes.
func medianOf(rounds []result) result {
	return report.MedianBy(rounds, func(r result) float64 {
		sum := 0.0
		for n := range r.changes {
			sum += float64(r.figures(n).stale)
		}
		return sum
	})
}

// colors of the variants in the chart, which are those of other charts.
var colors = map[string]int{warm.name: 0, statefulSet.name: 2, cold.name: 4}

func (d document) chart() report.Chart {
	o := d.options
	second := (o.mixed + o.after + o.before + 2*time.Second).Round(5 * time.Second)
	label := fmt.Sprintf("seconds; clients get the list of %d shards from 0 to %.0f, and that of %d from %.0f to %.0f", many, o.mixed.Seconds(), few, second.Seconds(), (second + o.mixed).Seconds())
	panels := []report.Panel{
		{Title: fmt.Sprintf("Reads per second of values replaced %.0f s before or earlier", load.Old.Seconds()), XLabel: label},
		{Title: "All stale reads per second", XLabel: label},
		{Title: "Hit ratio, %", XLabel: label, YTo: 100},
	}
	for _, rounds := range d.results {
		r := medianOf(rounds)
		color, shown := colors[r.variant.name]
		if !shown {
			continue
		}
		for i, points := range r.points(second, o.before) {
			panels[i].Series = append(panels[i].Series, report.Series{Name: r.variant.name, Color: color, Points: points})
		}
	}
	return report.Chart{
		Title:    fmt.Sprintf("From %d to %d shards and back under load", few, many),
		Subtitle: fmt.Sprintf("%s operations per second, 80%% get and 20%% set, keys by Zipf's law; each of %d clients gets the list at a time of its own", report.Number(o.rate), clients),
		Panels:   panels, Brief: []string{warm.name, statefulSet.name},
	}
}

// points returns the old reads and the stale reads per second, and the hit ratio in percent, over the seconds since clients get the first
// list. The second one follows at the given time, and is shown from a time before.
func (r result) points(second, before time.Duration) [3][]report.Point {
	var lines [3][]report.Point
	for n, c := range r.changes {
		for i := range r.report.Buckets() {
			at := r.report.At(i)
			x := at.Sub(c.published)
			if n > 0 {
				x += second
			}
			if x < -shownBefore || x >= second-before != (n > 0) || at.Before(c.runs) || !at.Before(c.measured) {
				continue
			}
			is, perSecond := r.report.Bucket(i), 1/r.report.Every.Seconds()
			for line, y := range []float64{float64(is.Old) * perSecond, float64(is.Stale) * perSecond, 100 * is.Ratio()} {
				lines[line] = append(lines[line], report.Point{X: x.Seconds() + r.report.Every.Seconds()/2, Y: y})
			}
		}
	}
	return lines
}
