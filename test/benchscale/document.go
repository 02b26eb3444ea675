package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

const (
	documentFile = "bench-scale.md"
	chartFile    = "bench-scale.svg"
)

// document tells a run of the bench.
type document struct {
	options options
	// args of the command line.
	args    []string
	machine string
	date    time.Time
	// idle is nil when it was not measured.
	idle *idle
	runs []run
}

//go:embed document.md
var documentText string

var documentTemplate = template.Must(template.New("").Parse(documentText))

// write writes the document and its picture into a folder.
func (d document) write(dir string) error {
	text, err := d.text()
	if err != nil {
		return err
	}
	return report.Write(dir, map[string][]byte{documentFile: text, chartFile: d.chart().svg()})
}

// text is the document.
func (d document) text() ([]byte, error) {
	last := d.runs[len(d.runs)-1]
	var b bytes.Buffer
	err := documentTemplate.Execute(&b, map[string]any{
		"Figures": strings.TrimSuffix(d.markdown(), "\n"), "Command": report.Command("bench-scale", d.args), "Date": d.date.UTC().Format(time.DateOnly), "Machine": d.machine,
		"Told": "`" + last.Told + "`", "Shards": shards, "Together": report.Number(d.options.together), "Starts": starts, "Brings": brings, "AtOnce": atOnce,
		"Window": d.options.window, "From": d.options.from, "To": d.options.to, "QuietFor": quietFor, "Workers": last.Workers,
		"ServedByDefault": report.Number(servedByDefault), "IdleFor": idleFor, "ForeignPods": report.Number(foreignPods), "ForeignSecrets": report.Number(foreignSecrets),
	})
	if err != nil {
		return nil, fmt.Errorf("writing the document: %w", err)
	}
	return b.Bytes(), nil
}

// chart is the picture. Memory begins with that of an operator without a Memcached.
func (d document) chart() chart {
	c := chart{
		title:    "The operator over the number of Memcacheds",
		subtitle: fmt.Sprintf("%d shards each, all made, all updated at once", shards),
	}
	var now, peak []report.Point
	if d.idle != nil {
		now, peak = append(now, report.Point{Y: report.MiB(d.idle.Alone.Now)}), append(peak, report.Point{Y: report.MiB(d.idle.Alone.Peak)})
	}
	seconds := map[string][]report.Point{}
	for _, r := range d.runs {
		n := float64(r.Size)
		for _, p := range r.Phases {
			seconds[p.Name] = append(seconds[p.Name], report.Point{X: n, Y: p.Took.Seconds()})
		}
		now, peak = append(now, report.Point{X: n, Y: report.MiB(r.phase(phaseCreate).Memory.Now)}), append(peak, report.Point{X: n, Y: report.MiB(r.peak())})
	}
	c.panels = []panel{
		{what: "Seconds until it is done for all", series: []series{
			{"update", seconds[phaseUpdate]}, {"create", seconds[phaseCreate]}, {"restart", seconds[phaseRestart]},
		}},
		{what: "Memory of the operator, MiB", series: []series{{"at most", peak}, {"when all are there", now}}},
	}
	return c
}

// disturbed returns the share of the processor time, from 0 to 1, that other programs
// had while Memcacheds were made and updated.
func (d document) disturbed() float64 {
	var others, all time.Duration
	for _, r := range d.runs {
		for _, name := range []string{phaseCreate, phaseUpdate} {
			p := r.phase(name)
			others, all = others+p.Spent.others(), all+p.Spent.Machine
		}
	}
	if all == 0 {
		return 0
	}
	return float64(others) / float64(all)
}

// peak is the most memory that the operator had in any phase, in bytes.
func (r run) peak() int64 {
	var most int64
	for _, p := range r.Phases {
		most = max(most, p.Memory.Peak)
	}
	return most
}
