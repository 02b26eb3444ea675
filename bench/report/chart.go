package report

import (
	"bytes"
	"encoding/json"
	"errors"
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
.s0 path { stroke: #0969da; } .s0 .name, .s0 circle, .s0 rect { fill: #0969da; }
.s1 path { stroke: #bc4c00; } .s1 .name, .s1 circle, .s1 rect { fill: #bc4c00; }
.s2 path { stroke: #8250df; } .s2 .name, .s2 circle, .s2 rect { fill: #8250df; }
.s3 path { stroke: #59636e; } .s3 .name, .s3 circle, .s3 rect { fill: #59636e; }
.s4 path { stroke: #1a7f37; } .s4 .name, .s4 circle, .s4 rect { fill: #1a7f37; }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1; }
.ground { fill: #0d1117; stroke: #3d444d; }
.title, .panel { fill: #f0f6fc; }
.grid { stroke: #2a313c; }
.mark { stroke: #9198a1; }
.s0 path { stroke: #58a6ff; } .s0 .name, .s0 circle, .s0 rect { fill: #58a6ff; }
.s1 path { stroke: #f0883e; } .s1 .name, .s1 circle, .s1 rect { fill: #f0883e; }
.s2 path { stroke: #bc8cff; } .s2 .name, .s2 circle, .s2 rect { fill: #bc8cff; }
.s3 path { stroke: #9198a1; } .s3 .name, .s3 circle, .s3 rect { fill: #9198a1; }
.s4 path { stroke: #3fb950; } .s4 .name, .s4 circle, .s4 rect { fill: #3fb950; }
}
`

// Point is a value Y at X.
type Point struct{ X, Y float64 }

// MarshalJSON writes a pair with two decimals, which is less than a pixel.
func (p Point) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "[%.2f,%.2f]", p.X, p.Y), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Point) UnmarshalJSON(text []byte) error {
	var pair [2]float64
	err := json.Unmarshal(text, &pair)
	p.X, p.Y = pair[0], pair[1]
	return err
}

// Chart is a picture of panels, one below the other.
type Chart struct {
	Title, Subtitle string
	Panels          []Panel
	// Brief are the lines of the first panel that a second picture shows, up to the X that all of them reach.
	Brief []string `json:",omitempty"`
}

// Panel is a pair of axes from 0. A line at X = 0 marks the beginning of what follows if values of X are negative.
type Panel struct {
	Title, XLabel string
	// YTo is the end of the Y axis, with a tick at each multiple of 20; 0 fits the axis to the values.
	YTo    float64 `json:",omitempty"`
	Series []Series
}

// Series is a line with its color, from 0 to 4.
type Series struct {
	Name   string
	Color  int
	Points []Point
}

// The layout, in pixels.
const (
	width                 = 900.0
	plotLeft, plotRight   = 58.0, 880.0
	header, panelGap      = 96.0, 84.0
	panelHeight           = 240.0
	briefHeight, briefEnd = 180.0, 60 // the latter in seconds
	maxMarks              = 20        // of a line whose points are drawn as circles
	maxXTicks, maxYTicks  = 10, 4
	labelAdjust           = 4.0
	letter, labelHeight   = 8.8, 14.0      // of a name, at most
	near, apart, farthest = 5.0, 8.0, 60.0 // of a name: from its line, and how much further from the others
)

// The data of a chart is part of its picture, so that it can be drawn again.
const dataBegin, dataEnd, briefName = "<metadata>", "</metadata>", "-brief"

// Read returns the chart of a picture.
func Read(svg []byte) (c Chart, err error) {
	_, data, found := bytes.Cut(svg, []byte(dataBegin))
	data, _, ended := bytes.Cut(data, []byte(dataEnd))
	if !found || !ended {
		return c, errors.New("the picture has no data")
	}
	return c, json.Unmarshal(data, &c)
}

// Pictures returns the pictures of the chart by the ends of their names. They are drawn from the data as it is written,
// with its decimals, so that a picture that is drawn again is the same.
func (c Chart) Pictures() (map[string][]byte, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	c = Chart{}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	pictures := map[string][]byte{".svg": c.svg(panelHeight, data)}
	if len(c.Brief) > 0 {
		pictures[briefName+".svg"] = c.brief().svg(briefHeight, nil)
	}
	return pictures, nil
}

func (c Chart) brief() Chart {
	p, end := c.Panels[0], float64(briefEnd)
	p.Series = slices.DeleteFunc(slices.Clone(p.Series), func(s Series) bool { return !slices.Contains(c.Brief, s.Name) })
	for _, s := range p.Series {
		end = min(end, s.Points[len(s.Points)-1].X)
	}
	for i, s := range p.Series {
		p.Series[i].Points = slices.DeleteFunc(slices.Clone(s.Points), func(at Point) bool { return at.X < 0 || at.X > end })
	}
	return Chart{Title: c.Title, Subtitle: c.Subtitle, Panels: []Panel{p}}
}

// svg draws panels of a height.
func (c Chart) svg(panel float64, data []byte) []byte {
	var b bytes.Buffer
	height := header + float64(len(c.Panels))*(panel+panelGap) - panelGap + 48
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(c.Title+". "+c.Subtitle))
	if data != nil {
		fmt.Fprintf(&b, "%s%s%s\n", dataBegin, data, dataEnd)
	}
	fmt.Fprintf(&b, "<style>%s</style>\n", style)
	fmt.Fprintf(&b, `<rect class="ground" x="0.5" y="0.5" width="%g" height="%g" rx="6"/>`+"\n", width-1, height-1)
	text(&b, "title", 20, 30, "start", c.Title)
	text(&b, "", 20, 51, "start", c.Subtitle)
	for i, p := range c.Panels {
		top := header + float64(i)*(panel+panelGap)
		p.draw(&b, top, top+panel)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p Panel) draw(b *bytes.Buffer, top, bottom float64) {
	x, y := p.axes(top, bottom)
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
	for _, s := range slices.Backward(p.Series) { // the first one on top
		if len(s.Points) == 0 {
			continue
		}
		fmt.Fprintf(b, `<g class="s%d"><path d="%s"/>`+"\n", s.Color, pathOf(s.Points, x, y))
		if len(s.Points) <= maxMarks {
			for _, at := range s.Points {
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.2"/>`+"\n", x.at(at.X), y.at(at.Y))
			}
		}
		b.WriteString("</g>\n")
	}
	p.names(b, x, y)
}

// names writes the name of each series on its line, or above the panel where it fits beside no line.
func (p Panel) names(b *bytes.Buffer, x, y axis) {
	lines := make([][]Point, len(p.Series))
	for i, s := range p.Series {
		lines[i] = dots(s.Points, x, y)
	}
	legend := box{plotRight, y.pixelTo - 14 - labelHeight + 2, 0, labelHeight}
	taken := []box{{plotLeft, legend.top, letter * float64(len(p.Title)), labelHeight}}
	for i, s := range slices.Backward(p.Series) {
		if len(s.Points) == 0 {
			continue
		}
		name := box{width: letter * float64(len(s.Name)), height: labelHeight}
		at, fits := name.beside(i, lines, taken, box{plotLeft, legend.top, plotRight - plotLeft, y.pixelFrom - legend.top})
		if !fits {
			legend.left, legend.width = legend.left-name.width, name.width
			at = legend
			legend.left -= 40
		}
		taken = append(taken, at)
		fmt.Fprintf(b, `<g class="s%d">`+"\n", s.Color)
		if !fits {
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="16" height="3"/>`+"\n", at.left-20, at.top+labelHeight-labelAdjust-2)
		}
		text(b, "name", at.left, at.top+labelHeight-2, "start", s.Name)
		b.WriteString("</g>\n")
	}
}

// dots returns points of a line, in pixels and so close that no name fits between them.
func dots(points []Point, x, y axis) []Point {
	var all []Point
	for i, to := range points {
		from := points[max(i-1, 0)]
		steps := 1 + math.Ceil(math.Hypot(x.at(to.X)-x.at(from.X), y.at(to.Y)-y.at(from.Y))/4)
		for n := 1.0; n <= steps; n++ {
			all = append(all, Point{x.at(from.X + (to.X-from.X)*n/steps), y.at(from.Y + (to.Y-from.Y)*n/steps)})
		}
	}
	return all
}

// box is a rectangle in pixels.
type box struct{ left, top, width, height float64 }

// distance returns that of a point; 0 inside.
func (b box) distance(p Point) float64 {
	return math.Hypot(max(b.left-p.X, p.X-b.left-b.width, 0), max(b.top-p.Y, p.Y-b.top-b.height, 0))
}

func (b box) overlaps(other box) bool {
	return b.left < other.left+other.width && other.left < b.left+b.width && b.top < other.top+other.height && other.top < b.top+b.height
}

// beside returns the place near a line that is furthest from the others, if there is one in the plot.
func (b box) beside(own int, lines [][]Point, taken []box, plot box) (best box, fits bool) {
	distance := near + apart
	for _, at := range lines[own] {
		for _, share := range []float64{0, 0.5, 1} {
			for _, top := range []float64{at.Y - near - b.height, at.Y + near} {
				place := box{at.X - share*b.width, top, b.width, b.height}
				if place.left < plot.left+near || place.left+place.width > plot.left+plot.width || place.top < plot.top || place.top+place.height > plot.top+plot.height ||
					slices.ContainsFunc(taken, place.overlaps) {
					continue
				}
				toOwn, toOthers := near, farthest
				for i, line := range lines {
					for _, p := range line {
						if i == own {
							toOwn = min(toOwn, place.distance(p))
						} else {
							toOthers = min(toOthers, place.distance(p))
						}
					}
				}
				if toOwn >= near-1 && toOthers > distance {
					best, fits, distance = place, true, toOthers
				}
			}
		}
	}
	return best, fits
}

// axes returns axes that fit the points of all series.
func (p Panel) axes(top, bottom float64) (x, y axis) {
	x = axis{pixelFrom: plotLeft, pixelTo: plotRight}
	highest := 1.0
	for _, s := range p.Series {
		for _, at := range s.Points {
			x.from, x.to = min(x.from, at.X), max(x.to, at.X)
			highest = max(highest, at.Y)
		}
	}
	x.to = max(math.Ceil(x.to), x.from+1) // the middle of the last half of a second is before its end
	x.step = step(x.to-x.from, maxXTicks)
	y = axis{step: step(highest, maxYTicks), pixelFrom: bottom, pixelTo: top}
	y.to = y.step * math.Ceil(highest/y.step)
	if p.YTo > 0 {
		y.step, y.to = 20, p.YTo
	}
	return x, y
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
