// Package dashboards draws the dashboards of the operator with recorded data, as Grafana does.
package dashboards

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/prometheus"
)

// Run draws docs/dashboard-NAME.svg from each dashboard-NAME.json of a folder, which is a prometheus.Recording.
func Run(_ context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: bench dashboards FOLDER")
	}
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(args[0], "dashboard-*.json"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s has no recording of a dashboard: run make dashboards", args[0])
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var r prometheus.Recording
		if err := json.Unmarshal(content, &r); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		picture := filepath.Join(root, "docs", strings.TrimSuffix(filepath.Base(file), ".json")+".svg")
		if err := os.WriteFile(picture, draw(r), 0o644); err != nil { //nolint:gosec // a document
			return err
		}
	}
	return nil
}

const style = `
text { font: 11px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #59636e; }
.ground { fill: #f6f8fa; } .panel { fill: #ffffff; stroke: #d1d9e0; } .grid { stroke: #d1d9e0; }
.title { font-size: 17px; font-weight: 600; fill: #1f2328; } .row { font-size: 14px; font-weight: 600; fill: #1f2328; }
.name, .column { font-size: 12px; font-weight: 600; fill: #1f2328; } .cell { font-size: 12px; fill: #1f2328; } .value { font-size: 26px; font-weight: 600; fill: #1a7f37; }
path { fill: none; stroke-width: 1.5; stroke-linejoin: round; }
.s0 { stroke: #0969da; } .s1 { stroke: #bc4c00; } .s2 { stroke: #8250df; } .s3 { stroke: #1a7f37; } .s4 { stroke: #59636e; } .s5 { stroke: #bf3989; }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1; }
.ground { fill: #010409; } .panel { fill: #0d1117; stroke: #3d444d; } .grid { stroke: #2a313c; }
.title, .row, .name, .column, .cell { fill: #f0f6fc; } .value { fill: #3fb950; }
.s0 { stroke: #58a6ff; } .s1 { stroke: #f0883e; } .s2 { stroke: #bc8cff; } .s3 { stroke: #3fb950; } .s4 { stroke: #9198a1; } .s5 { stroke: #f778ba; }
}
`

// The layout, in pixels.
const (
	margin, rowHeight     = 12.0, 34.0
	width, height, gap    = 380.0, 190.0, 8.0
	statHeight            = 72.0
	columns, statColumns  = 3, 6
	total                 = 2*margin + columns*width + (columns-1)*gap
	cellHeight, maxCells  = 18.0, 8
	plotLeft, plotRight   = 52.0, 368.0
	plotTop, plotBottom   = 32.0, 118.0
	legendTop, lineSpace  = 136.0, 14.0
	legendLines, entries  = 4, 12
	phasesTop, phaseSpace = 30.0, 15.0
	colors                = 6
)

// size returns the width and the height of a panel.
func size(p prometheus.Panel, r prometheus.Recording) (float64, float64) {
	switch p.Type {
	case "stat":
		return (total-2*margin+gap)/statColumns - gap, statHeight
	case "table":
		return width, plotTop + cellHeight*float64(1+max(1, min(len(current(p, r)), maxCells)))
	}
	return width, height
}

// draw returns the picture of a dashboard.
func draw(r prometheus.Recording) []byte {
	var body bytes.Buffer
	y := 40.0
	drawRow := func(panels []prometheus.Panel) {
		x, lineHeight := margin, 0.0
		for _, p := range panels {
			w, h := size(p, r)
			if x+w > total-margin+1 {
				x, y, lineHeight = margin, y+lineHeight+gap, 0
			}
			fmt.Fprintf(&body, `<g transform="translate(%g %g)">`+"\n", x, y)
			drawPanel(&body, p, r, w, h)
			body.WriteString("</g>\n")
			x, lineHeight = x+w+gap, max(lineHeight, h)
		}
		y += lineHeight + gap
	}
	var inRow []prometheus.Panel
	for _, p := range r.Dashboard.Panels {
		if p.Type != "row" {
			inRow = append(inRow, p)
			continue
		}
		if len(inRow) > 0 {
			drawRow(inRow)
		}
		inRow = nil
		x := margin
		if len(p.Panels) > 0 { // those of a row that is collapsed are not seen
			x += 14
			text(&body, "", margin, y+22, "▸")
		}
		text(&body, "row", x, y+22, p.Title)
		y += rowHeight
	}
	if len(inRow) > 0 {
		drawRow(inRow)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="The dashboard %s">`+"\n", total, y+margin, total, y+margin, html.EscapeString(r.Dashboard.Title))
	fmt.Fprintf(&b, "<style>%s</style>\n<rect class=\"ground\" width=\"%g\" height=\"%g\"/>\n", style, total, y+margin)
	text(&b, "title", margin, 28, r.Dashboard.Title)
	b.Write(body.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// line is a series with its name in the legend.
type line struct {
	name string
	prometheus.Series
}

func (l line) last() prometheus.Point { return l.Points[len(l.Points)-1] }

func (l line) highest() (highest float64) {
	for _, at := range l.Points {
		highest = max(highest, at.Value)
	}
	return highest
}

// linesOf returns the series of a panel by their names.
func linesOf(p prometheus.Panel, data map[string][]prometheus.Series) []line {
	var all []line
	for _, target := range p.Targets {
		for _, series := range data[target.Expr] {
			name := label.ReplaceAllStringFunc(target.LegendFormat, func(name string) string { return series.Labels[strings.Trim(name, "{}")] })
			all = append(all, line{name, series})
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return strings.Compare(a.name, b.name) })
	return all
}

var label = regexp.MustCompile(`{{(\w+)}}`)

// current returns the series of a panel that have a value at the end.
func current(p prometheus.Panel, r prometheus.Recording) []line {
	return slices.DeleteFunc(linesOf(p, r.Data), func(l line) bool { return r.Until.Sub(l.last().At) > 5*prometheus.Interval })
}

func drawPanel(b *bytes.Buffer, p prometheus.Panel, r prometheus.Recording, width, height float64) {
	fmt.Fprintf(b, `<rect class="panel" width="%g" height="%g" rx="4"/>`+"\n", width, height)
	text(b, "name", 10, 20, p.Title)
	lines, unit := linesOf(p, r.Data), p.FieldConfig.Defaults.Unit
	switch {
	case p.Type == "table":
		table(b, current(p, r), unit)
	case len(lines) == 0:
		text(b, "", 10, height/2+10, "No data")
	case p.Type == "stat":
		text(b, "value", 10, 56, number(lines[0].last().Value, unit))
	case p.Type == "state-timeline":
		for i, l := range lines[:min(len(lines), 10)] {
			top := phasesTop + float64(i)*phaseSpace
			text(b, "", 10, top+10, l.name)
			for _, at := range l.Points {
				x := 110 + (plotRight-110)*float64(at.At.Sub(r.From))/float64(r.Until.Sub(r.From))
				fmt.Fprintf(b, `<path class="s%d" style="stroke-width:10" d="M%.1f %.1fh3"/>`+"\n", i%colors, x, top+6)
			}
		}
	default:
		plot(b, lines, r.From, r.Until, unit)
	}
}

// table draws a column for each label that a row has, and one for the value.
func table(b *bytes.Buffer, rows []line, unit string) {
	if len(rows) == 0 {
		text(b, "", 10, plotTop+cellHeight, "none")
		return
	}
	rows = rows[:min(len(rows), maxCells)]
	var all []column
	for _, name := range []string{"alertname", "memcached", "shard", "schedule", "condition", "reason", "version", "step", "gate"} {
		if slices.ContainsFunc(rows, func(l line) bool { return l.Labels[name] != "" }) {
			all = append(all, columnOf(name, rows, func(l line) string { return l.Labels[name] }))
		}
	}
	all = append(all, columnOf("value", rows, func(l line) string { return number(l.last().Value, unit) }))
	letters, before := 0, 0
	for _, c := range all {
		letters += c.letters
	}
	for _, c := range all {
		for i, words := range c.cells {
			class := "cell"
			if i == 0 {
				class = "column"
			}
			text(b, class, 10+(width-20)*float64(before)/float64(letters), plotTop+8+float64(i)*cellHeight, words)
		}
		before += c.letters
	}
}

// column has the texts of a column, and the letters of the longest one and of a gap.
type column struct {
	cells   []string
	letters int
}

func columnOf(header string, rows []line, cell func(line) string) column {
	c := column{cells: []string{header}}
	for _, l := range rows {
		c.cells = append(c.cells, cell(l))
	}
	for _, words := range c.cells {
		c.letters = max(c.letters, len(words)+3)
	}
	return c
}

func plot(b *bytes.Buffer, lines []line, from, until time.Time, unit string) {
	if len(lines) > entries { // the legend has no room for all: those without values come last
		slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.highest(), a.highest()) })
	}
	highest := 0.0
	for _, l := range lines {
		highest = max(highest, l.highest())
	}
	if highest == 0 {
		highest = 1
	}
	for _, share := range []float64{0, 0.5, 1} {
		y := plotBottom - share*(plotBottom-plotTop)
		fmt.Fprintf(b, `<path class="grid" d="M%g %.1fH%g"/><text text-anchor="end" x="%g" y="%.1f">%s</text>`+"\n", plotLeft, y, plotRight, plotLeft-4, y+4, number(share*highest, unit))
	}
	for i, l := range lines {
		fmt.Fprintf(b, `<path class="s%d" d="`, i%colors)
		for n, at := range l.Points {
			command := "L"
			if n == 0 || at.At.Sub(l.Points[n-1].At) > 5*prometheus.Interval {
				command = "M"
			}
			x := plotLeft + (plotRight-plotLeft)*float64(at.At.Sub(from))/float64(until.Sub(from))
			fmt.Fprintf(b, "%s%.1f %.1f", command, x, plotBottom-max(at.Value, 0)/highest*(plotBottom-plotTop))
		}
		b.WriteString("\"/>\n")
	}
	for i, l := range lines[:min(len(lines), entries)] {
		x, y := 10+float64(i/legendLines)*122, legendTop+float64(i%legendLines)*lineSpace
		fmt.Fprintf(b, `<path class="s%d" d="M%g %gh10"/>`+"\n", i%colors, x, y-4)
		name := []rune(l.name)
		if len(name) > 18 {
			name = append(name[:17], '…')
		}
		text(b, "", x+14, y, string(name))
	}
}

// number returns a value with its unit.
func number(v float64, unit string) string {
	switch {
	case unit == "percentunit" && v < 0.1:
		return fmt.Sprintf("%.2g%%", v*100)
	case unit == "percentunit":
		return fmt.Sprintf("%.0f%%", v*100)
	case unit == "bytes" || unit == "Bps":
		for _, prefix := range []string{"", " Ki", " Mi", " Gi"} {
			if v < 1024 || prefix == " Gi" {
				return fmt.Sprintf("%.3g%s", v, prefix)
			}
			v /= 1024
		}
	case unit == "s" && v > 0 && v < 0.001:
		return fmt.Sprintf("%.0f µs", v*1e6)
	case unit == "s" && v > 0 && v < 1:
		return fmt.Sprintf("%.3g ms", v*1e3)
	case unit == "s":
		return fmt.Sprintf("%.3g s", v)
	}
	if v >= 1e4 {
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}

func text(b *bytes.Buffer, class string, x, y float64, words string) {
	fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, x, y, html.EscapeString(words))
}
