package main

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/load"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

const chartFile = "bench-upgrade.svg"

// shownBefore is how much of the time before the change the chart shows.
const shownBefore = 10 * time.Second

// document reports a run of the benchmark.
type document struct {
	options options
	machine string
	date    time.Time
	args    []string // of the command line
	results []result
}

//go:embed document.md
var template string

// write writes the document and its chart to a folder.
func (d document) write(folder string) error {
	text, err := d.text()
	if err != nil {
		return err
	}
	return report.Write(folder, map[string][]byte{"bench-upgrade.md": text, chartFile: d.chart().SVG()})
}

func (d document) text() ([]byte, error) {
	var changes []string
	for _, r := range d.results {
		changes = append(changes, fmt.Sprintf("- **%s**: %s.", r.variant.name, r.variant.change))
	}
	return report.Document(template, map[string]any{
		"Table": d.table().Markdown(), "Chart": chartFile, "Title": d.title(), "Machine": d.machine,
		"Date": d.date.UTC().Format(time.DateOnly), "Command": report.Command("bench-upgrade", d.args), "Changes": strings.Join(changes, "\n"),
		"Shards": shards, "Rate": report.Number(d.options.rate), "Keys": report.Number(d.options.keysPerShard),
		"AllKeys":  report.Number(shards * d.options.keysPerShard),
		"ColdLoss": fmt.Sprintf("%.3g", float64(shards*d.options.keysPerShard)/float64(d.options.rate)),
		"Unread":   report.Number(shards * unreadPerShard), "ValueSize": load.ValueSize, "Window": recoveryWindow,
		"DatabaseTime": load.DatabaseTime, "Timeout": load.Timeout, "Patience": load.Patience,
	})
}

func (d document) title() string {
	return fmt.Sprintf("An upgrade of memcached from %s to %s under load", d.options.from, d.options.to)
}

// table has a column for each variant. The others are compared with the first.
func (d document) table() report.Table {
	var all []figures
	table := report.Table{{""}}
	for _, r := range d.results {
		all = append(all, r.figures())
		table[0] = append(table[0], r.variant.name)
	}
	add := func(label string, cell func(figures) string) { report.Add(&table, label, all, cell) }
	first := all[0]
	add("hits lost, in seconds of full traffic", func(f figures) string {
		return report.Seconds(f.lossDuration(), 1) + factor(f.loss.Seconds, first.loss.Seconds)
	})
	add("hits lost, in additional reads of the database", func(f figures) string { return report.Number(f.loss.Hits) })
	add("items kept, of those that no client read", func(f figures) string {
		return report.Number(f.kept) + " of " + report.Number(f.unread)
	})
	add("lowest hit ratio of half a second", func(f figures) string { return report.Percent(f.lowest, 1) })
	add("hit ratio back to 99% of the value before", func(f figures) string {
		if f.recovered {
			return "after " + report.Seconds(f.recovery, 0) + factor(f.recovery.Seconds(), first.recovery.Seconds())
		}
		return "not within " + report.Seconds(f.ran, 0) + ": " + report.Percent(f.last, 1)
	})
	add("operations that failed after a retry", func(f figures) string {
		return report.Number(f.errors) + factor(float64(f.errors), float64(first.errors))
	})
	add("longest time without an answer of a shard", func(f figures) string { return report.Seconds(f.silence, 1) })
	add("duration of the upgrade", func(f figures) string { return report.Seconds(f.took, 0) })
	add("p99 latency before → after the change", func(f figures) string {
		return report.Milliseconds(f.p99Before, 1) + " → " + report.Milliseconds(f.p99After, 1)
	})
	add("for comparison: hits lost in "+report.Seconds(first.noiseFor, 0)+" without a change", func(f figures) string {
		seconds := f.noise.Seconds
		if seconds > -0.005 && seconds < 0 {
			seconds = 0 // not -0.00
		}
		return fmt.Sprintf("%.2f s", seconds)
	})
	return table
}

// factor compares a value with the first variant's. It is empty if the two are equal or one is too small.
func factor(value, first float64) string {
	ratio := value / first
	switch {
	case min(value, first) < 0.1 || value == first:
		return ""
	case ratio < 10:
		return fmt.Sprintf(" (%.1f ×)", ratio)
	}
	return fmt.Sprintf(" (%.0f ×)", ratio)
}

func (d document) chart() report.Chart {
	ratio := report.Panel{Title: "Hit ratio, %", XLabel: "seconds since the change", YTo: 100}
	errors := report.Panel{Title: "Failed operations per second", XLabel: "seconds since the change"}
	for _, r := range d.results {
		f := r.figures()
		recovery := "hit ratio back after " + report.Seconds(f.recovery, 0)
		if !f.recovered {
			recovery = "hit ratio not back within " + report.Seconds(f.ran, 0)
		}
		ratios, failed := r.points()
		ratio.Series = append(ratio.Series, report.Series{Name: r.variant.name, Points: ratios, Notes: []string{
			report.Seconds(f.lossDuration(), 1) + " of traffic lost", recovery, fmt.Sprintf("%.4g%% of items kept", 100*float64(f.kept)/float64(f.unread)),
		}})
		errors.Series = append(errors.Series, report.Series{Name: r.variant.name, Points: failed})
	}
	return report.Chart{
		Title: d.title(),
		Subtitle: fmt.Sprintf("%d shards of %s items, %s operations per second, 80%% get and 20%% set, keys by Zipf's law",
			shards, report.Number(d.options.keysPerShard), report.Number(d.options.rate)),
		Panels: []report.Panel{ratio, errors},
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
	for _, r := range d.results {
		sum += r.figures().errorsBefore
	}
	return sum
}
