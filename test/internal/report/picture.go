package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
)

// style is of its own: a picture in a page does not get the page's. Where the
// reader asks for dark, all of it is dark, the ground too, as a page may be light
// beside a dark desktop. The three colors are told apart by the color-blind.
const style = `
text { font: 12px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #59636e; }
.ground { fill: #ffffff; stroke: #d1d9e0; }
.title { font-size: 17px; font-weight: 600; fill: #1f2328; }
.panel { font-weight: 600; fill: #1f2328; }
.name { font-size: 14px; font-weight: 600; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.mark { stroke: #59636e; stroke-width: 1; stroke-dasharray: 3 3; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.area { stroke: none; fill-opacity: 0.12; }
.leader { fill: none; stroke-width: 1; stroke-dasharray: 1 3; }
.s0 .line, .s0 .leader { stroke: #0969da; } .s0 .area, .s0 .name, .s0 .label, .s0 circle { fill: #0969da; }
.s1 .line, .s1 .leader { stroke: #bc4c00; } .s1 .area, .s1 .name, .s1 .label, .s1 circle { fill: #bc4c00; }
.s2 .line, .s2 .leader { stroke: #8250df; } .s2 .area, .s2 .name, .s2 .label, .s2 circle { fill: #8250df; }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1; }
.ground { fill: #0d1117; stroke: #3d444d; }
.title, .panel { fill: #f0f6fc; }
.grid { stroke: #2a313c; }
.mark { stroke: #9198a1; }
.area { fill-opacity: 0.18; }
.s0 .line, .s0 .leader { stroke: #58a6ff; } .s0 .area, .s0 .name, .s0 .label, .s0 circle { fill: #58a6ff; }
.s1 .line, .s1 .leader { stroke: #f0883e; } .s1 .area, .s1 .name, .s1 .label, .s1 circle { fill: #f0883e; }
.s2 .line, .s2 .leader { stroke: #bc8cff; } .s2 .area, .s2 .name, .s2 .label, .s2 circle { fill: #bc8cff; }
}
`

// Point is a value Y at X.
type Point struct{ X, Y float64 }

// Axis maps values to pixels. From and To are what is shown, with a tick each Step,
// and pixels may grow downwards.
type Axis struct{ From, To, Step, PixelFrom, PixelTo float64 }

// AxisTo returns one that begins at 0 and ends with the first of about so many ticks
// that is no less than most, nor than 1.
func AxisTo(most float64, ticks int, pixelFrom, pixelTo float64) Axis {
	most = max(most, 1)
	s := Step(0, most, ticks)
	return Axis{To: s * math.Ceil(most/s), Step: s, PixelFrom: pixelFrom, PixelTo: pixelTo}
}

// At returns the pixel of a value; beyond the ends, that of the end.
func (a Axis) At(v float64) float64 {
	share := (min(max(v, a.From), a.To) - a.From) / (a.To - a.From)
	return a.PixelFrom + share*(a.PixelTo-a.PixelFrom)
}

// Ticks returns the multiples of Step that are shown.
func (a Axis) Ticks() []float64 {
	var ticks []float64
	for n := math.Ceil(a.From / a.Step); n*a.Step <= a.To; n++ {
		ticks = append(ticks, n*a.Step)
	}
	return ticks
}

// Step returns 1, 2 or 5 times a power of ten, so that at most that many of them
// are between two values.
func Step(from, to float64, atMost int) float64 {
	least := (to - from) / float64(atMost)
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, times := range []float64{1, 2, 5} {
		if s := times * power; s >= least {
			return s
		}
	}
	return 10 * power
}

// Path joins points by lines, as the attribute d of a path.
func Path(points []Point, x, y Axis) string {
	var b strings.Builder
	for i, p := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", command, x.At(p.X), y.At(p.Y))
	}
	return b.String()
}

// Picture is an SVG that is being drawn. Its classes are s0, s1 and s2 for what
// belongs to a series, and in these line, area, leader, name, label and circles; beside
// them title, panel, grid and mark.
type Picture struct{ b bytes.Buffer }

// NewPicture begins a picture of a size in pixels.
func NewPicture(width, height float64, title, subtitle string) *Picture {
	p := &Picture{}
	p.Add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">`, width, height, width, height, html.EscapeString(title+". "+subtitle))
	p.Add("<title>%s</title>\n<style>%s</style>", html.EscapeString(title), style)
	p.Add(`<rect class="ground" x="0.5" y="0.5" width="%g" height="%g" rx="6"/>`, width-1, height-1)
	p.Text("title", 20, 30, "start", title)
	p.Text("", 20, 51, "start", subtitle)
	return p
}

// Add adds an element, as it is written.
func (p *Picture) Add(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// Text writes words, anchored at their start, middle or end.
func (p *Picture) Text(class string, x, y float64, anchor, words string) {
	if class != "" {
		class = fmt.Sprintf(` class="%s"`, class)
	}
	if anchor != "start" {
		class += fmt.Sprintf(` text-anchor="%s"`, anchor)
	}
	p.Add(`<text%s x="%.1f" y="%.1f">%s</text>`, class, x, y, html.EscapeString(words))
}

// Grid draws a line for each tick of y, with its value, and what they are above.
func (p *Picture) Grid(x, y Axis, what string, whatAt float64) {
	p.Text("panel", whatAt, y.PixelTo-14, "start", what)
	for _, v := range y.Ticks() {
		p.Add(`<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x.PixelFrom, x.PixelTo, y.At(v), y.At(v))
		p.Text("", x.PixelFrom-8, y.At(v)+4, "end", Number(v))
	}
}

// Group draws what belongs to the series of a number.
func (p *Picture) Group(series int, draw func()) {
	p.Add(`<g class="s%d">`, series)
	draw()
	p.Add("</g>")
}

// SVG ends the picture and returns it.
func (p *Picture) SVG() []byte {
	p.Add("</svg>")
	return p.b.Bytes()
}
