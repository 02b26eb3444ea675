package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// row is one figure of every variant.
type row struct {
	label string
	cells []string
}

// rows tells the figures for people. The first variant's is what the others' are
// compared with.
func rows(all []figures) []row {
	var table []row
	add := func(label string, cell func(f figures) string) {
		r := row{label: label}
		for _, f := range all {
			r.cells = append(r.cells, cell(f))
		}
		table = append(table, r)
	}
	add("hits lost, in seconds of full traffic", func(f figures) string {
		return fmt.Sprintf("%.1f s", f.loss.Seconds) + times(f.loss.Seconds, all[0].loss.Seconds)
	})
	add("the same in reads that the database got for it", func(f figures) string { return report.Number(f.loss.Hits) })
	add("items kept, of those that were not read meanwhile", func(f figures) string {
		return fmt.Sprintf("%s of %s", report.Number(f.kept), report.Number(f.unread))
	})
	add("lowest hit ratio of half a second", func(f figures) string { return percent(f.lowest) })
	add("hit ratio back to 99 % of what it was", func(f figures) string {
		if f.isBack {
			return fmt.Sprintf("after %.0f s", f.back.Seconds()) + times(f.back.Seconds(), all[0].back.Seconds())
		}
		return fmt.Sprintf("not within %.0f s: %s", f.ran.Seconds(), percent(f.last))
	})
	add("operations that failed, after a retry", func(f figures) string {
		return report.Number(f.errors) + times(float64(f.errors), float64(all[0].errors))
	})
	add("longest time without an answer of a shard", func(f figures) string { return fmt.Sprintf("%.1f s", f.silence.Seconds()) })
	add("the upgrade took", func(f figures) string { return fmt.Sprintf("%.0f s", f.took.Seconds()) })
	add("p99 latency before → from the change on", func(f figures) string {
		return report.Milliseconds(f.p99Before, 1) + " → " + report.Milliseconds(f.p99After, 1)
	})
	add(fmt.Sprintf("for comparison: hits lost in %.0f s without a change", all[0].noiseFor.Seconds()), func(f figures) string {
		return fmt.Sprintf("%.2f s", unsigned(f.noise.Seconds))
	})
	return table
}

// times tells how many times as much as the first variant's; nothing where that is
// the first itself, or either is so little that no ratio means anything.
func times(value, first float64) string {
	ratio := value / first
	switch {
	case min(value, first) < 0.1 || value == first:
		return ""
	case ratio < 10:
		return fmt.Sprintf(" (%.1f ×)", ratio)
	}
	return fmt.Sprintf(" (%.0f ×)", ratio)
}

// unsigned makes what chance brought below nothing, but not below what is shown,
// nothing.
func unsigned(seconds float64) float64 {
	if seconds > -0.005 && seconds < 0 {
		return 0
	}
	return seconds
}

func percent(ratio float64) string { return fmt.Sprintf("%.1f %%", 100*ratio) }

// terminal is the table for a terminal.
func (d document) terminal() string {
	table := append([]row{{cells: d.names()}}, rows(d.figures())...)
	var widths []int
	for _, r := range table {
		for i, cell := range append([]string{r.label}, r.cells...) {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, r := range table {
		for i, cell := range append([]string{r.label}, r.cells...) {
			b.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// markdown is the table for a document.
func (d document) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(d.names(), " | "), strings.Repeat("---|", len(d.results)))
	for _, r := range rows(d.figures()) {
		fmt.Fprintf(&b, "| %s | %s |\n", r.label, strings.Join(r.cells, " | "))
	}
	return b.String()
}

func (d document) names() []string {
	var names []string
	for _, r := range d.results {
		names = append(names, r.variant.name)
	}
	return names
}

func (d document) figures() []figures {
	var all []figures
	for _, r := range d.results {
		all = append(all, r.figures())
	}
	return all
}

// disturbed is how many operations failed before the changes, which is for none of
// what is measured.
func (d document) disturbed() int {
	sum := 0
	for _, f := range d.figures() {
		sum += f.errorsBefore
	}
	return sum
}
