package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// style is part of the picture, as a picture does not inherit the style of its page. Color-blind readers
// can distinguish the colors.
const style = `
text { font: 12px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #59636e; }
.ground { fill: #ffffff; stroke: #d1d9e0; }
.title { font-size: 17px; font-weight: 600; fill: #1f2328; }
.panel { font-weight: 600; fill: #1f2328; }
.name { font-size: 14px; font-weight: 600; }
.grid { stroke: #d1d9e0; }
.mark { stroke: #59636e; stroke-dasharray: 3 3; }
path { fill: none; stroke-width: 2; stroke-linejoin: round; }
.s0 path { stroke: #0969da; } .s0 .name, .s0 circle { fill: #0969da; }
.s1 path { stroke: #bc4c00; } .s1 .name, .s1 circle { fill: #bc4c00; }
.s2 path { stroke: #8250df; } .s2 .name, .s2 circle { fill: #8250df; }
.s3 path { stroke: #59636e; } .s3 .name, .s3 circle { fill: #59636e; }
.s4 path { stroke: #1a7f37; } .s4 .name, .s4 circle { fill: #1a7f37; }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1; }
.ground { fill: #0d1117; stroke: #3d444d; }
.title, .panel { fill: #f0f6fc; }
.grid { stroke: #2a313c; }
.mark { stroke: #9198a1; }
.s0 path { stroke: #58a6ff; } .s0 .name, .s0 circle { fill: #58a6ff; }
.s1 path { stroke: #f0883e; } .s1 .name, .s1 circle { fill: #f0883e; }
.s2 path { stroke: #bc8cff; } .s2 .name, .s2 circle { fill: #bc8cff; }
.s3 path { stroke: #9198a1; } .s3 .name, .s3 circle { fill: #9198a1; }
.s4 path { stroke: #3fb950; } .s4 .name, .s4 circle { fill: #3fb950; }
}
`

// Point is a value Y at X.
type Point struct{ X, Y float64 }

// Chart is a picture of panels, one below the other.
type Chart struct {
	Title, Subtitle string
	Panels          []Panel
}

// Panel is a pair of axes with at most four lines. Y begins at 0, or at the multiple of 20 below the lowest value if
// YTo is given. A line at X = 0 marks the beginning of what follows if values of X are negative.
type Panel struct {
	Title, XLabel string
	// YTo is the end of the Y axis; 0 fits the axis to the values.
	YTo    float64
	Series []Series
}

// Series is a line, with notes under its name.
type Series struct {
	Name   string
	Notes  []string
	Points []Point
}

// The layout, in pixels.
const (
	width                  = 900.0
	plotLeft, plotRight    = 58.0, 690.0
	header, panelHeight    = 96.0, 210.0
	panelGap, lineHeight   = 84.0, 16.0
	maxMarks               = 20 // of a line whose points are drawn as circles
	maxXTicks, maxYTicks   = 10, 4
	labelLeft, labelAdjust = plotRight + 14, 4.0
)

// SVG draws the chart.
func (c Chart) SVG() []byte {
	var b bytes.Buffer
	height := header + float64(len(c.Panels))*(panelHeight+panelGap) - 20
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(c.Title+". "+c.Subtitle))
	fmt.Fprintf(&b, "<style>%s</style>\n", style)
	fmt.Fprintf(&b, `<rect class="ground" x="0.5" y="0.5" width="%g" height="%g" rx="6"/>`+"\n", width-1, height-1)
	text(&b, "title", 20, 30, "start", c.Title)
	text(&b, "", 20, 51, "start", c.Subtitle)
	for i, p := range c.Panels {
		p.draw(&b, header+float64(i)*(panelHeight+panelGap))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p Panel) draw(b *bytes.Buffer, top float64) {
	x, y := p.axes(top)
	text(b, "panel", plotLeft, top-14, "start", p.Title)
	for _, v := range y.ticks() {
		line(b, "grid", x.pixelFrom, y.at(v), x.pixelTo, y.at(v))
		text(b, "", plotLeft-8, y.at(v)+labelAdjust, "end", Number(v))
	}
	for _, v := range x.ticks() {
		text(b, "", x.at(v), y.pixelFrom+18, "middle", Number(v))
	}
	text(b, "", (plotLeft+plotRight)/2, y.pixelFrom+36, "middle", p.XLabel)
	if x.from < 0 {
		line(b, "mark", x.at(0), y.pixelFrom, x.at(0), y.pixelTo)
	}
	labels := p.labels(y)
	for i, s := range slices.Backward(p.Series) { // the first one on top
		if len(s.Points) == 0 {
			continue
		}
		fmt.Fprintf(b, `<g class="s%d"><path d="%s"/>`+"\n", i, pathOf(s.Points, x, y))
		if len(s.Points) <= maxMarks {
			for _, at := range s.Points {
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.2"/>`+"\n", x.at(at.X), y.at(at.Y))
			}
		}
		text(b, "name", labelLeft, labels[i], "start", s.Name)
		for n, note := range s.Notes {
			text(b, "", labelLeft, labels[i]+float64(n+1)*lineHeight, "start", note)
		}
		b.WriteString("</g>\n")
	}
}

// axes returns axes that fit the points of all series.
func (p Panel) axes(top float64) (x, y axis) {
	x = axis{pixelFrom: plotLeft, pixelTo: plotRight}
	lowest, highest := p.YTo, 1.0
	for _, s := range p.Series {
		for _, at := range s.Points {
			x.from, x.to = min(x.from, at.X), max(x.to, at.X)
			lowest, highest = min(lowest, at.Y), max(highest, at.Y)
		}
	}
	x.to = max(x.to, x.from+1)
	x.step = step(x.to-x.from, maxXTicks)
	y = axis{step: step(highest, maxYTicks), pixelFrom: top + panelHeight, pixelTo: top}
	y.to = y.step * math.Ceil(highest/y.step)
	if p.YTo > 0 {
		y.step, y.to = 20, p.YTo
		y.from = min(20*math.Floor(lowest/20), p.YTo-20)
	}
	return x, y
}

// labels returns where the name of each series is written: beside the end of its line, below the one above it.
func (p Panel) labels(y axis) []float64 {
	order := make([]int, 0, len(p.Series))
	for i, s := range p.Series {
		if len(s.Points) > 0 {
			order = append(order, i)
		}
	}
	end := func(i int) float64 { s := p.Series[i].Points; return y.at(s[len(s)-1].Y) }
	slices.SortStableFunc(order, func(a, b int) int { return int(end(a) - end(b)) })
	labels := make([]float64, len(p.Series))
	next := 0.0
	for _, i := range order {
		labels[i] = max(next, end(i)+labelAdjust)
		next = labels[i] + float64(len(p.Series[i].Notes)+1)*lineHeight + labelAdjust
	}
	return labels
}

// axis maps values to pixels, with a tick at each multiple of step.
type axis struct{ from, to, step, pixelFrom, pixelTo float64 }

// at returns the pixel of a value; beyond the ends, that of the end.
func (a axis) at(v float64) float64 {
	share := (min(max(v, a.from), a.to) - a.from) / (a.to - a.from)
	return a.pixelFrom + share*(a.pixelTo-a.pixelFrom)
}

func (a axis) ticks() []float64 {
	var ticks []float64
	for n := math.Ceil(a.from / a.step); n*a.step <= a.to; n++ {
		ticks = append(ticks, n*a.step)
	}
	return ticks
}

// step returns 1, 2 or 5 times a power of ten, of which at most so many are in a range.
func step(length float64, atMost int) float64 {
	least := length / float64(atMost)
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, times := range []float64{1, 2, 5} {
		if s := times * power; s >= least {
			return s
		}
	}
	return 10 * power
}

func pathOf(points []Point, x, y axis) string {
	var b strings.Builder
	for i, p := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", command, x.at(p.X), y.at(p.Y))
	}
	return b.String()
}

func text(b *bytes.Buffer, class string, x, y float64, anchor, words string) {
	fmt.Fprintf(b, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, anchor, x, y, html.EscapeString(words))
}

func line(b *bytes.Buffer, class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(b, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", class, x1, y1, x2, y2)
}
