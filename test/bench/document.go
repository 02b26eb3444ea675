package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/load"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

const (
	documentFile = "bench-upgrade.md"
	chartFile    = "bench-upgrade.svg"
)

// shownBefore is how much of the time before the change the picture shows.
const shownBefore = 10 * time.Second

// document tells a run of the bench.
type document struct {
	options options
	machine string
	date    time.Time
	// args of the command line.
	args    []string
	results []result
}

//go:embed document.md
var documentText string

var documentTemplate = template.Must(template.New("").Funcs(template.FuncMap{
	"number":       report.Number[int],
	"milliseconds": func(d time.Duration) string { return report.Milliseconds(d, 0) },
}).Parse(documentText))

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
	var changes []string
	for _, r := range d.results {
		changes = append(changes, fmt.Sprintf("**%s**: %s.", r.variant.name, r.variant.change))
	}
	var b bytes.Buffer
	err := documentTemplate.Execute(&b, map[string]any{
		"Table": d.markdown(), "Chart": chartFile, "Title": d.title(), "Machine": d.machine,
		"Date": d.date.UTC().Format(time.DateOnly), "Command": report.Command("bench-upgrade", d.args), "Changes": changes,
		"From": d.options.from, "To": d.options.to,
		"Shards": shards, "Rate": d.options.rate, "Keys": d.options.keys, "AllKeys": shards * d.options.keys,
		"ColdLoss": fmt.Sprintf("%.3g", float64(shards*d.options.keys)/float64(d.options.rate)),
		"Unread":   shards * unread, "ValueSize": load.ValueSize, "Before": d.options.before, "Settle": settle,
		"DatabaseTime": load.DatabaseTime, "Timeout": load.Timeout, "Patience": load.Patience, "BackOver": backOver,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the document: %w", err)
	}
	return b.Bytes(), nil
}

func (d document) title() string {
	return fmt.Sprintf("An upgrade of memcached from %s to %s under load", d.options.from, d.options.to)
}

// chart is the picture.
func (d document) chart() chart {
	c := chart{
		title: d.title(),
		subtitle: fmt.Sprintf("%d shards of %s items, %s operations a second, 80 %% get and 20 %% set, keys by Zipf's law",
			shards, report.Number(d.options.keys), report.Number(d.options.rate)),
	}
	for _, r := range d.results {
		c.series = append(c.series, r.series())
	}
	return c
}

// series is a run as it is drawn: each bucket at its middle.
func (r result) series() series {
	f := r.figures()
	s := series{name: r.variant.name, notes: []string{
		fmt.Sprintf("%.1f s of traffic lost", f.loss.Seconds),
		fmt.Sprintf("hit ratio back after %.0f s", f.back.Seconds()),
		fmt.Sprintf("%.4g %% of items kept", 100*float64(f.kept)/float64(f.unread)),
	}}
	if !f.isBack {
		s.notes[1] = fmt.Sprintf("not back within %.0f s", f.ran.Seconds())
	}
	for i := range r.report.Buckets() {
		at := r.report.At(i)
		if at.Before(r.change.Add(-shownBefore)) || !at.Before(r.until) {
			continue
		}
		c := r.report.Bucket(i)
		x := at.Sub(r.change).Seconds() + r.report.Every.Seconds()/2
		s.ratio = append(s.ratio, report.Point{X: x, Y: 100 * c.Ratio()})
		s.errors = append(s.errors, report.Point{X: x, Y: float64(c.Errors) / r.report.Every.Seconds()})
	}
	return s
}
