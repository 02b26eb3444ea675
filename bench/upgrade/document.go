package upgrade

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/bench/load"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
)

// shownBefore is how much of the time before the change the chart shows.
const shownBefore = 10 * time.Second

// document reports a run of the benchmark.
type document struct {
	options options
	// results are those of all rounds, by variant.
	results [][]result
}

// documents are those of all numbers of items. Chart and text are of the first one.
type documents []document

func (all documents) result(machine string) report.Result {
	var changes, items, mebibytes []string
	var tables []report.Table
	d, failed := all[0], 0
	for _, rounds := range d.results {
		changes = append(changes, fmt.Sprintf("- **%s**: %s.", rounds[0].variant.name, rounds[0].variant.does))
	}
	for _, of := range all {
		number, table := report.Number(of.options.items), of.table()
		if len(all) > 1 {
			table[0][0] = number + " items"
		}
		items, mebibytes, tables = append(items, number), append(mebibytes, strconv.Itoa(of.options.mebibytes())), append(tables, table)
		failed += of.errorsBefore()
	}
	o, chart, warning := d.options, d.chart(), ""
	if failed > 0 {
		warning = report.Number(failed) + " operations failed before the change: the machine was busy. Run the benchmark again when it is idle."
	}
	return report.Result{
		Machine: machine, Tables: tables, Chart: &chart, Warning: warning,
		Values: map[string]any{
			"Title": o.kind.title(o), "Changes": strings.Join(changes, "\n"), "Rounds": o.rounds, "Saturated": saturated, "Settle": settle,
			"Shards": shards, "Rate": report.Number(o.rate), "Keys": report.Number(o.keysPerShard), "AllKeys": report.Number(shards * o.keysPerShard),
			"ColdLoss": fmt.Sprintf("%.3g", float64(shards*o.keysPerShard)/float64(o.rate)),
			"Unread":   strings.Join(items, " or "), "Bytes": o.bytes, "Version": o.to, "Mebibytes": strings.Join(mebibytes, " or "),
			"Further":   strings.Join(items[1:], " and "),
			"ValueSize": load.ValueSize, "Window": recoveryWindow, "DatabaseTime": load.DatabaseTime, "Timeout": load.Timeout, "Patience": load.Patience,
		},
	}
}

// table has a column for each variant, with the median and the range of all rounds. The others are compared with the first.
func (d document) table() report.Table {
	table := report.Table{{""}}
	all := make([][]figures, len(d.results))
	for i, rounds := range d.results {
		table[0] = append(table[0], rounds[0].variant.name)
		for _, r := range rounds {
			all[i] = append(all[i], r.figures())
		}
	}
	add := func(label string, cell func(rounds []figures) string) { report.Add(&table, label, all, cell) }
	addSpread := func(label string, value func(figures) float64, format func(float64) string) {
		add(label, func(rounds []figures) string { return report.SpreadOf(rounds, value).Text(format) })
	}
	addCompared := func(label string, value func(figures) float64, format func(float64) string) {
		add(label, func(rounds []figures) string {
			s := report.SpreadOf(rounds, value)
			return s.Text(format) + report.Factor(s.Median, report.SpreadOf(all[0], value).Median)
		})
	}
	seconds := func(n float64) string { return fmt.Sprintf("%.1f s", n) }
	milliseconds := func(n float64) string { return fmt.Sprintf("%.1f ms", n) }
	number := func(n float64) string { return report.Number(n) }
	percent := func(n float64) string { return report.Percent(n, 1) }
	inMilliseconds := func(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }

	addCompared("hits lost, in seconds of full traffic", func(f figures) float64 { return f.loss.Seconds }, seconds)
	addSpread("hits lost, in additional reads of the database", func(f figures) float64 { return f.loss.Hits }, number)
	addCompared("operations that failed after a retry", func(f figures) float64 { return float64(f.errors) }, number)
	addSpread("longest time without an answer of a shard", func(f figures) float64 { return f.silence.Seconds() }, seconds)
	addSpread("items kept, of those that no client read", func(f figures) float64 { return float64(f.kept) / float64(f.unread) }, percent)
	addSpread("lowest hit ratio of half a second", func(f figures) float64 { return f.lowest }, percent)
	add("hit ratio back to 99% of the value before", func(rounds []figures) string {
		late := 0
		for _, f := range rounds {
			if !f.recovered {
				late++
			}
		}
		if late > 0 {
			return fmt.Sprintf("not within %s in %d of %d rounds: %s", report.Seconds(rounds[0].ran, 0), late, len(rounds), percent(report.SpreadOf(rounds, func(f figures) float64 { return f.last }).Median))
		}
		recovery := func(f figures) float64 { return f.recovery.Seconds() }
		s := report.SpreadOf(rounds, recovery)
		return "after " + s.Text(func(n float64) string { return fmt.Sprintf("%.0f s", n) }) + report.Factor(s.Median, report.SpreadOf(all[0], recovery).Median)
	})
	addSpread("duration of the "+d.options.kind.noun, func(f figures) float64 { return f.took.Seconds() }, seconds)
	addSpread("p99 latency before the change", func(f figures) float64 { return inMilliseconds(f.p99Before) }, milliseconds)
	if d.options.kind.during {
		addSpread("p99 latency from the change until it is done", func(f figures) float64 { return inMilliseconds(f.p99During) }, milliseconds)
	}
	addSpread("p99 latency after the change", func(f figures) float64 { return inMilliseconds(f.p99After) }, milliseconds)
	addCompared("steady state: operations per second at most", func(f figures) float64 { return f.most }, number)
	addCompared("steady state: p99 latency of these", func(f figures) float64 { return inMilliseconds(f.mostP99) }, milliseconds)
	addSpread("for comparison: hits lost in "+report.Seconds(all[0][0].noiseFor, 0)+" without a change", func(f figures) float64 { return f.noise.Seconds }, func(n float64) string {
		if n > -0.005 && n < 0 {
			n = 0 // not -0.00
		}
		return fmt.Sprintf("%.2f s", n)
	})
	return table
}

// medianOf returns the round with the median of the hits lost.
func medianOf(rounds []result) result {
	return report.MedianBy(rounds, func(r result) float64 { return r.figures().loss.Seconds })
}

// colors of the variants, the same in all charts.
var colors = map[string]int{"this operator": 0, "by handover": 1, "mode Available": 1, "StatefulSet": 2, "Deployments": 3, "mode Disabled": 4}

func (d document) chart() report.Chart {
	ratio := report.Panel{Title: "Hit ratio, %", XLabel: "seconds since the change", YTo: 100}
	errors := report.Panel{Title: "Failed operations per second", XLabel: "seconds since the change"}
	for _, rounds := range d.results {
		r := medianOf(rounds)
		ratios, failed := r.points()
		ratio.Series = append(ratio.Series, report.Series{Name: r.variant.name, Color: colors[r.variant.name], Points: ratios})
		errors.Series = append(errors.Series, report.Series{Name: r.variant.name, Color: colors[r.variant.name], Points: failed})
	}
	return report.Chart{
		Title: d.options.kind.title(d.options),
		Subtitle: fmt.Sprintf("%d shards of %s items, %s operations per second, 80%% get and 20%% set, keys by Zipf's law",
			shards, report.Number(d.options.keysPerShard), report.Number(d.options.rate)),
		Panels: []report.Panel{ratio, errors}, Brief: d.options.kind.brief,
	}
}

// points returns the hit ratio in percent and the errors per second over the seconds since the change, each bucket at its
// middle.
func (r result) points() (ratio, errors []report.Point) {
	for i := range r.report.Buckets() {
		at := r.report.At(i)
		if at.Before(r.change.Add(-shownBefore)) || !at.Before(r.until) {
			continue
		}
		c := r.report.Bucket(i)
		x := at.Sub(r.change).Seconds() + r.report.Every.Seconds()/2
		ratio = append(ratio, report.Point{X: x, Y: 100 * c.Ratio()})
		errors = append(errors, report.Point{X: x, Y: float64(c.Errors) / r.report.Every.Seconds()})
	}
	return ratio, errors
}

// errorsBefore returns how many operations failed before the changes, which nothing that is measured explains.
func (d document) errorsBefore() int {
	sum := 0
	for _, rounds := range d.results {
		for _, r := range rounds {
			sum += r.figures().errorsBefore
		}
	}
	return sum
}
