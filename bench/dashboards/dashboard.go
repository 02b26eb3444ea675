// Package dashboards draws the dashboards of the operator with recorded data, as Grafana does.
package dashboards

import (
	"bytes"
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
.ground { fill: #ffffff; } .panel { fill: #ffffff; stroke: #d1d9e0; } .grid { stroke: #d1d9e0; }
.title { font-size: 17px; font-weight: 600; fill: #1f2328; } .row { font-size: 14px; font-weight: 600; fill: #1f2328; }
.name { font-size: 12px; font-weight: 600; fill: #1f2328; } .value { font-size: 30px; font-weight: 600; fill: #1a7f37; }
path { fill: none; stroke-width: 1.5; stroke-linejoin: round; } rect.state { opacity: 0.8; }
.s0 { stroke: #0969da; } .s1 { stroke: #bc4c00; } .s2 { stroke: #8250df; } .s3 { stroke: #1a7f37; } .s4 { stroke: #59636e; } .s5 { stroke: #bf3989; }
`

// The layout, in pixels.
const (
	margin, rowHeight    = 12.0, 34.0
	width, height, gap   = 380.0, 190.0, 8.0
	columns, gridWidth   = 3, 8
	plotLeft, plotRight  = 52.0, 368.0
	plotTop, plotBottom  = 32.0, 118.0
	legendTop, lineSpace = 136.0, 14.0
	legendLines, entries = 4, 12
	colors               = 6
)

// draw returns the picture of a dashboard.
func draw(r prometheus.Recording) []byte {
	var body bytes.Buffer
	y := 40.0
	drawRow := func(panels []prometheus.Panel) {
		for i, p := range panels {
			x := margin + float64(i%columns)*(width+gap)
			fmt.Fprintf(&body, `<g transform="translate(%g %g)">`+"\n", x, y+float64(i/columns)*(height+gap))
			drawPanel(&body, p, r)
			body.WriteString("</g>\n")
		}
		y += float64((len(panels)+columns-1)/columns) * (height + gap)
	}
	var inRow []prometheus.Panel
	for _, p := range r.Dashboard.Panels {
		if p.Type != "row" {
			inRow = append(inRow, p)
			continue
		}
		drawRow(inRow)
		inRow = p.Panels
		text(&body, "row", margin, y+22, p.Title)
		y += rowHeight
	}
	drawRow(inRow)
	total := 2*margin + columns*width + (columns-1)*gap
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
	name   string
	points []prometheus.Point
}

func (l line) last() float64 { return l.points[len(l.points)-1].Value }

// linesOf returns the series of a panel by their names.
func linesOf(p prometheus.Panel, data map[string][]prometheus.Series) []line {
	var all []line
	for _, target := range p.Targets {
		for _, series := range data[target.Expr] {
			all = append(all, line{legend(target.LegendFormat, series.Labels), series.Points})
		}
	}
	slices.SortFunc(all, func(a, b line) int { return strings.Compare(a.name, b.name) })
	return all
}

var label = regexp.MustCompile(`{{(\w+)}}`)

// legend fills in the labels of a series. Without a format it is what a table shows.
func legend(format string, labels map[string]string) string {
	if format != "" {
		return label.ReplaceAllStringFunc(format, func(name string) string { return labels[strings.Trim(name, "{}")] })
	}
	var shown []string
	for _, name := range []string{"alertname", "memcached", "shard", "schedule", "reason", "version", "step", "gate"} {
		if labels[name] != "" {
			shown = append(shown, labels[name])
		}
	}
	return strings.Join(shown, " ")
}

func drawPanel(b *bytes.Buffer, p prometheus.Panel, r prometheus.Recording) {
	fmt.Fprintf(b, `<rect class="panel" width="%g" height="%g" rx="4"/>`+"\n", width, height)
	text(b, "name", 10, 20, p.Title)
	lines := linesOf(p, r.Data)
	from, until := r.From, r.Until
	if len(lines) == 0 {
		text(b, "", 10, plotBottom, "No data")
		return
	}
	unit := p.FieldConfig.Defaults.Unit
	switch p.Type {
	case "stat":
		text(b, "value", 10, 90, number(lines[0].last(), unit))
	case "table":
		for i, l := range lines[:min(len(lines), 9)] {
			text(b, "", 10, 42+float64(i)*16, l.name+"  "+number(l.last(), unit))
		}
	case "state-timeline":
		for i, l := range lines[:min(len(lines), 10)] {
			top := 30 + float64(i)*15
			text(b, "", 10, top+10, l.name)
			for _, at := range l.points {
				x := 110 + (plotRight-110)*float64(at.At.Sub(from))/float64(until.Sub(from))
				fmt.Fprintf(b, `<path class="s%d" style="stroke-width:10" d="M%.1f %.1fh3"/>`+"\n", i%colors, x, top+6)
			}
		}
	default:
		plot(b, lines, from, until, unit)
	}
}

func plot(b *bytes.Buffer, lines []line, from, until time.Time, unit string) {
	highest := 0.0
	for _, l := range lines {
		for _, at := range l.points {
			highest = max(highest, at.Value)
		}
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
		for n, at := range l.points {
			command := "L"
			if n == 0 || at.At.Sub(l.points[n-1].At) > 5*prometheus.Interval {
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
