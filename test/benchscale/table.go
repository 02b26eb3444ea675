package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/audit"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// row is a figure of each run.
type row struct {
	what string
	// of returns the figure; empty is none.
	of func(run) string
}

// titles are the names of the phases for people.
var titles = map[string]string{
	phaseCreate: "Create", phaseSteady: "Nothing to do", phaseResync: "Resync", phaseRestart: "Restart", phaseUpdate: "Update",
}

// rows are the figures for people.
func rows() []row {
	rows := []row{
		{"Memory that the operator may have", func(r run) string { return report.Mebibytes(r.Limit) }},
		{"**Create**: seconds until all are Available", took(phaseCreate)},
		{"… until half of them had a first write, and 99 %", first(phaseCreate)},
		{"… objects made, a Memcached", per(phaseCreate, func(p phase) int { return p.Counts.Made })},
	}
	rows = append(rows, requests(phaseCreate)...)
	rows = append(rows, costs(phaseCreate)...)
	for _, name := range []string{phaseSteady, phaseResync, phaseRestart} {
		if name != phaseSteady {
			what := "seconds until it has gone through all"
			rows = append(rows, row{"**" + titles[name] + "**: " + what, took(name)})
		}
		rows = append(rows,
			row{label(name, name == phaseSteady, "writes and events"), count(name, func(p phase) string {
				return fmt.Sprintf("%s and %s", report.Number(p.Counts.Changes()), report.Number(p.Counts.Events))
			})},
			row{"… reads", count(name, func(p phase) string { return report.Number(p.Counts.Reads) })},
			row{"… reconciles", count(name, func(p phase) string { return report.Number(p.Reconciles) })},
			row{"… processor of the operator", count(name, func(p phase) string { return inSeconds(p.Spent.Operator) })},
		)
		if name == phaseRestart {
			rows = append(rows, row{"… memory, and at most", memory(name)})
		}
	}
	rows = append(rows,
		row{"**Update**: seconds until all have settled", took(phaseUpdate)},
		row{"… until half of them had a first write, and 99 %", first(phaseUpdate)},
	)
	rows = append(rows, requests(phaseUpdate)...)
	rows = append(rows, costs(phaseUpdate)...)
	return append(rows, row{"Requests held back by its own client", func(r run) string { return report.Number(len(r.Throttled)) }})
}

// requests are the rows of what was asked of the API server in a phase.
func requests(name string) []row {
	return []row{
		{"… writes, a Memcached", per(name, func(p phase) int { return p.Counts.Changes() })},
		{"… of them beyond the objects made", per(name, func(p phase) int { return p.Counts.Beyond() })},
		{"… events, a Memcached", per(name, func(p phase) int { return p.Counts.Events })},
		{"… reads, a Memcached", per(name, func(p phase) int { return p.Counts.Reads })},
		{"… requests a second", count(name, func(p phase) string {
			return report.Number(int(float64(p.Counts.Changes()+p.Counts.Events+p.Counts.Reads) / p.Took.Seconds()))
		})},
		{"… reconciles, a Memcached", per(name, func(p phase) int { return p.Reconciles })},
	}
}

// costs are the rows of what a phase cost.
func costs(name string) []row {
	return []row{
		{"… memory of the operator, and at most", memory(name)},
		{"… processor of the operator", count(name, func(p phase) string { return inSeconds(p.Spent.Operator) })},
		{"… of API server and etcd", count(name, func(p phase) string { return inSeconds(p.Spent.Server) })},
		{"… of controllers, and of this bench", count(name, func(p phase) string {
			return inSeconds(p.Spent.Controllers) + ", " + inSeconds(p.Spent.Bench)
		})},
		{"… of all other programs of the machine", count(name, func(p phase) string { return inSeconds(p.Spent.others()) })},
		{"… API server the bottleneck", count(name, func(p phase) string { return percent(p.Bottleneck.Either) })},
	}
}

// label names a row, with the phase's name if it is the phase's first.
func label(name string, isFirst bool, what string) string {
	if isFirst {
		return "**" + titles[name] + "**: " + what
	}
	return "… " + what
}

func count(name string, of func(phase) string) func(run) string {
	return func(r run) string { return of(r.phase(name)) }
}

func per(name string, of func(phase) int) func(run) string {
	return func(r run) string { return fmt.Sprintf("%.2f", float64(of(r.phase(name)))/float64(r.Size)) }
}

func took(name string) func(run) string {
	return func(r run) string { return fmt.Sprintf("%.1f", r.phase(name).Took.Seconds()) }
}

func first(name string) func(run) string {
	return func(r run) string {
		p := r.phase(name)
		return inSeconds(audit.Percentile(p.First, 50)) + ", " + inSeconds(audit.Percentile(p.First, 99))
	}
}

func memory(name string) func(run) string {
	return func(r run) string {
		m := r.phase(name).Memory
		return report.Mebibytes(m.Now) + ", " + report.Mebibytes(m.Peak)
	}
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// markdown is the figures as tables.
func (d document) markdown() string {
	var b strings.Builder
	if len(d.runs) > 0 {
		b.WriteString("| Memcacheds |")
		for _, r := range d.runs {
			fmt.Fprintf(&b, " %s |", report.Number(r.Size))
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", len(d.runs)) + "\n")
		for _, row := range rows() {
			b.WriteString("| " + row.what + " |")
			for _, r := range d.runs {
				b.WriteString(" " + row.of(r) + " |")
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	if d.idle != nil {
		fmt.Fprintf(&b, "| No Memcached | memory | at most |\n|---|---:|---:|\n| alone | %s | %s |\n| beside %s pods and %s Secrets of others | %s | %s |\n\n",
			report.Mebibytes(d.idle.Alone.Now), report.Mebibytes(d.idle.Alone.Peak), report.Number(foreignPods), report.Number(foreignSecrets), report.Mebibytes(d.idle.Beside.Now), report.Mebibytes(d.idle.Beside.Peak))
	}
	return b.String()
}

// terminal is the figures for a terminal.
func (d document) terminal() string {
	var b strings.Builder
	if len(d.runs) > 0 {
		fmt.Fprintf(&b, "%-56s", "Memcacheds")
		for _, r := range d.runs {
			fmt.Fprintf(&b, "%20s", report.Number(r.Size))
		}
		b.WriteString("\n")
	}
	for _, row := range rows() {
		if len(d.runs) == 0 {
			break
		}
		what := strings.ReplaceAll(row.what, "**", "")
		b.WriteString(what + strings.Repeat(" ", max(56-len([]rune(what)), 1)))
		for _, r := range d.runs {
			fmt.Fprintf(&b, "%20s", row.of(r))
		}
		b.WriteString("\n")
	}
	if d.idle != nil {
		fmt.Fprintf(&b, "no Memcached: %s alone, %s beside others' objects\n", report.Mebibytes(d.idle.Alone.Now), report.Mebibytes(d.idle.Beside.Now))
	}
	return b.String()
}
