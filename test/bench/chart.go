package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
)

// chart is a picture of what went on over time: the hit ratio above, the errors
// below, a line for each series.
type chart struct {
	title, subtitle string
	series          []series
}

// series is one line in each panel.
type series struct {
	name string
	// notes are the lines under the name.
	notes []string
	// ratio in percent and errors a second, over the seconds since the change.
	ratio, errors []point
}

type point struct{ x, y float64 }

// The layout, in pixels of a picture that is 900 wide.
const (
	width, height = 900.0, 470.0
	left, right   = 58.0, 712.0
	// the panels, from the top of the picture
	ratioTop, ratioBottom   = 84.0, 294.0
	errorsTop, errorsBottom = 338.0, 424.0
	// lineHeight of the labels beside the panels.
	lineHeight = 17.0
)

// style is of its own: a picture in a page does not get the page's. Where the
// reader asks for dark, all of it is dark, the ground too, as a page may be light
// beside a dark desktop. The three colors are told apart by the color-blind.
const style = `
text { font: 12.5px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #59636e; }
.ground { fill: #ffffff; stroke: #d1d9e0; }
.title { font-size: 17px; font-weight: 600; fill: #1f2328; }
.panel { font-weight: 600; fill: #1f2328; }
.name { font-size: 14px; font-weight: 600; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.change { stroke: #59636e; stroke-width: 1; stroke-dasharray: 3 3; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.area { stroke: none; fill-opacity: 0.12; }
.leader { fill: none; stroke-width: 1; stroke-dasharray: 1 3; }
.s0 .line { stroke-width: 2.4; }
.s0 .line, .s0 .leader { stroke: #0969da; } .s0 .area, .s0 .name { fill: #0969da; }
.s1 .line, .s1 .leader { stroke: #bc4c00; } .s1 .area, .s1 .name { fill: #bc4c00; }
.s2 .line, .s2 .leader { stroke: #8250df; } .s2 .area, .s2 .name { fill: #8250df; }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1; }
.ground { fill: #0d1117; stroke: #3d444d; }
.title, .panel { fill: #f0f6fc; }
.grid { stroke: #2a313c; }
.change { stroke: #9198a1; }
.area { fill-opacity: 0.18; }
.s0 .line, .s0 .leader { stroke: #58a6ff; } .s0 .area, .s0 .name { fill: #58a6ff; }
.s1 .line, .s1 .leader { stroke: #f0883e; } .s1 .area, .s1 .name { fill: #f0883e; }
.s2 .line, .s2 .leader { stroke: #bc8cff; } .s2 .area, .s2 .name { fill: #bc8cff; }
}
`

// axis maps values to pixels. Its ends are what is shown, and pixels may grow
// downwards.
type axis struct{ from, to, pixelFrom, pixelTo float64 }

// at returns the pixel of a value; beyond the ends, that of the end.
func (a axis) at(v float64) float64 {
	share := (min(max(v, a.from), a.to) - a.from) / (a.to - a.from)
	return a.pixelFrom + share*(a.pixelTo-a.pixelFrom)
}

// ticks returns the multiples of step that are shown.
func (a axis) ticks(step float64) []float64 {
	var ticks []float64
	for v := math.Ceil(a.from/step) * step; v <= a.to; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}

// step returns 1, 2 or 5 times a power of ten, so that at most that many of them
// are between two values.
func step(from, to float64, atMost int) float64 {
	least := (to - from) / float64(atMost)
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, times := range []float64{1, 2, 5} {
		if s := times * power; s >= least {
			return s
		}
	}
	return 10 * power
}

// svg draws the chart.
func (c chart) svg() []byte {
	x, ratio, errors := c.axes()
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">`, width, height, width, height, html.EscapeString(c.title+". "+c.subtitle))
	fmt.Fprintf(&b, "\n<title>%s</title>\n<style>%s</style>\n", html.EscapeString(c.title), style)
	fmt.Fprintf(&b, `<rect class="ground" x="0.5" y="0.5" width="%g" height="%g" rx="6"/>`+"\n", width-1, height-1)
	text(&b, "title", 20, 30, "start", c.title)
	text(&b, "", 20, 51, "start", c.subtitle)

	panel(&b, x, ratio, 20, "Hit ratio, %", "the area above a line is the hits that were lost")
	panel(&b, x, errors, step(errors.from, errors.to, 3), "Operations that failed, per second", "")
	seconds := step(x.from, x.to, 10)
	for _, v := range x.ticks(seconds) {
		label := number(v)
		if v > 0 {
			label = "+" + label
		}
		text(&b, "", x.at(v), errorsBottom+18, "middle", label)
	}
	text(&b, "", (left+right)/2, errorsBottom+37, "middle", "seconds since the change was asked for")
	for _, y := range []axis{ratio, errors} {
		fmt.Fprintf(&b, `<line class="change" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", x.at(0), x.at(0), y.pixelFrom, y.pixelTo)
	}

	labels := c.labels(ratio)
	for i := len(c.series) - 1; i >= 0; i-- { // the first on top
		s := c.series[i]
		fmt.Fprintf(&b, `<g class="s%d">`+"\n", i)
		fmt.Fprintf(&b, `<path class="area" d="%sV%.1fH%.1fZ"/>`+"\n", path(s.ratio, x, ratio), ratio.pixelTo, x.at(s.ratio[0].x))
		fmt.Fprintf(&b, `<path class="line" d="%s"/>`+"\n", path(s.ratio, x, ratio))
		fmt.Fprintf(&b, `<path class="line" d="%s"/>`+"\n", path(s.errors, x, errors))
		end := s.ratio[len(s.ratio)-1]
		fmt.Fprintf(&b, `<path class="leader" d="M%.1f %.1fH%.1fL%.1f %.1f"/>`+"\n", x.at(end.x), ratio.at(end.y), right, right+14, labels[i]-4)
		text(&b, "name", right+19, labels[i], "start", s.name)
		for n, note := range s.notes {
			text(&b, "", right+19, labels[i]+float64(n+1)*lineHeight, "start", note)
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// axes fit all series: time to what is there, the hit ratio from the fifth below
// its lowest to 100 %, errors from 0.
func (c chart) axes() (x, ratio, errors axis) {
	x = axis{pixelFrom: left, pixelTo: right}
	ratio = axis{from: 80, to: 100, pixelFrom: ratioBottom, pixelTo: ratioTop}
	errors = axis{to: 1, pixelFrom: errorsBottom, pixelTo: errorsTop}
	for _, s := range c.series {
		for _, p := range s.ratio {
			x.from, x.to = min(x.from, p.x), max(x.to, p.x)
			ratio.from = min(ratio.from, 20*math.Floor(p.y/20))
		}
		for _, p := range s.errors {
			errors.to = max(errors.to, p.y)
		}
	}
	s := step(0, errors.to, 3)
	errors.to = s * math.Ceil(errors.to/s)
	return x, ratio, errors
}

// labels returns where the name of each series is written: beside the end of its
// line, but below the one before it.
func (c chart) labels(ratio axis) []float64 {
	var at []float64
	next := ratioTop
	for _, s := range c.series {
		y := max(next, ratio.at(s.ratio[len(s.ratio)-1].y)+4)
		at = append(at, y)
		next = y + float64(len(s.notes)+1)*lineHeight + 9
	}
	return at
}

// panel draws a grid with the values of its y axis and what they are.
func panel(b *bytes.Buffer, x, y axis, step float64, what, remark string) {
	text(b, "panel", left, y.pixelTo-12, "start", what)
	if remark != "" {
		text(b, "", right, y.pixelTo-12, "end", remark)
	}
	for _, v := range y.ticks(step) {
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", x.pixelFrom, x.pixelTo, y.at(v), y.at(v))
		text(b, "", x.pixelFrom-8, y.at(v)+4, "end", number(v))
	}
}

// path joins points by lines.
func path(points []point, x, y axis) string {
	var b strings.Builder
	for i, p := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", command, x.at(p.x), y.at(p.y))
	}
	return b.String()
}

func text(b *bytes.Buffer, class string, x, y float64, anchor, words string) {
	if class != "" {
		class = fmt.Sprintf(` class="%s"`, class)
	}
	if anchor != "start" {
		class += fmt.Sprintf(` text-anchor="%s"`, anchor)
	}
	fmt.Fprintf(b, `<text%s x="%.1f" y="%.1f">%s</text>`+"\n", class, x, y, html.EscapeString(words))
}
