package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
)

// chart is a picture of panels side by side, over the number of Memcacheds.
type chart struct {
	title, subtitle string
	panels          []panel
}

// panel is one set of axes.
type panel struct {
	what   string
	series []series
}

// series is a line, with a mark for what was measured.
type series struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// The layout, in pixels of a picture that is 900 wide.
const (
	width, height = 900.0, 380.0
	top, bottom   = 100.0, 320.0
	// of a panel, from its left
	panelWidth, plotLeft, plotRight = 440.0, 62.0, 282.0
	lineHeight                      = 16.0
)

// style is of its own: a picture in a page does not get the page's. Where the
// reader asks for dark, all of it is dark, the ground too, as a page may be light
// beside a dark desktop. The three colors are told apart by the color-blind.
const style = `
text { font: 12px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #59636e; }
.ground { fill: #ffffff; stroke: #d1d9e0; }
.title { font-size: 17px; font-weight: 600; fill: #1f2328; }
.panel { font-weight: 600; fill: #1f2328; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.s0 .line { stroke: #0969da; } .s0 circle, .s0 text { fill: #0969da; }
.s1 .line { stroke: #bc4c00; } .s1 circle, .s1 text { fill: #bc4c00; }
.s2 .line { stroke: #8250df; } .s2 circle, .s2 text { fill: #8250df; }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1; }
.ground { fill: #0d1117; stroke: #3d444d; }
.title, .panel { fill: #f0f6fc; }
.grid { stroke: #2a313c; }
.s0 .line { stroke: #58a6ff; } .s0 circle, .s0 text { fill: #58a6ff; }
.s1 .line { stroke: #f0883e; } .s1 circle, .s1 text { fill: #f0883e; }
.s2 .line { stroke: #bc8cff; } .s2 circle, .s2 text { fill: #bc8cff; }
}
`

// axis maps values from 0 on to pixels.
type axis struct{ to, step, pixelFrom, pixelTo float64 }

// axisTo returns one that shows values up to most, with so many ticks about.
func axisTo(most float64, ticks int, pixelFrom, pixelTo float64) axis {
	s := step(max(most, 1), ticks)
	return axis{s * math.Ceil(max(most, 1)/s), s, pixelFrom, pixelTo}
}

func (a axis) at(v float64) float64 { return a.pixelFrom + v/a.to*(a.pixelTo-a.pixelFrom) }

// step returns 1, 2 or 5 times a power of ten, so that at most that many of them
// are up to a value.
func step(to float64, atMost int) float64 {
	least := to / float64(atMost)
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
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">`, width, height, width, height, html.EscapeString(c.title+". "+c.subtitle))
	fmt.Fprintf(&b, "\n<title>%s</title>\n<style>%s</style>\n", html.EscapeString(c.title), style)
	fmt.Fprintf(&b, `<rect class="ground" x="0.5" y="0.5" width="%g" height="%g" rx="6"/>`+"\n", width-1, height-1)
	text(&b, "title", 20, 30, "start", c.title)
	text(&b, "", 20, 51, "start", c.subtitle)
	for i, p := range c.panels {
		p.draw(&b, 10+float64(i)*panelWidth)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// draw draws a panel from a left edge on.
func (p panel) draw(b *bytes.Buffer, left float64) {
	var most point
	for _, s := range p.series {
		for _, at := range s.points {
			most.x, most.y = max(most.x, at.x), max(most.y, at.y)
		}
	}
	x, y := axisTo(most.x, 5, left+plotLeft, left+plotRight), axisTo(most.y, 5, bottom, top)
	text(b, "panel", left+10, top-18, "start", p.what)
	for v := 0.0; v <= y.to*1.0001; v += y.step {
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", x.pixelFrom, x.pixelTo, y.at(v), y.at(v))
		text(b, "", x.pixelFrom-8, y.at(v)+4, "end", number(v))
	}
	for v := 0.0; v <= x.to*1.0001; v += x.step {
		text(b, "", x.at(v), bottom+18, "middle", number(v))
	}
	text(b, "", (x.pixelFrom+x.pixelTo)/2, bottom+38, "middle", "Memcacheds")
	labels := p.labels(y)
	for i, s := range p.series {
		if len(s.points) == 0 {
			continue
		}
		fmt.Fprintf(b, `<g class="s%d">`+"\n", i)
		fmt.Fprintf(b, `<path class="line" d="%s"/>`+"\n", path(s.points, x, y))
		for _, at := range s.points {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.2"/>`+"\n", x.at(at.x), y.at(at.y))
		}
		last := s.points[len(s.points)-1]
		text(b, "", x.at(last.x)+9, labels[i], "start", fmt.Sprintf("%s, %s", s.name, number(last.y)))
		b.WriteString("</g>\n")
	}
}

// labels returns where the name of each series is written: beside the end of its
// line, but none over another.
func (p panel) labels(y axis) []float64 {
	at := make([]float64, len(p.series))
	for i, s := range p.series {
		if len(s.points) == 0 {
			continue
		}
		at[i] = y.at(s.points[len(s.points)-1].y) + 4
		for again := true; again; {
			again = false
			for _, other := range at[:i] {
				if other != 0 && math.Abs(other-at[i]) < lineHeight {
					at[i], again = other+lineHeight, true
				}
			}
		}
	}
	return at
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
