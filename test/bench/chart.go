package main

import (
	"math"
	"slices"

	"github.com/memcached-operator/memcached-operator/test/internal/report"
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
	ratio, errors []report.Point
}

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

// svg draws the chart.
func (c chart) svg() []byte {
	x, ratio, errors := c.axes()
	p := report.NewPicture(width, height, c.title, c.subtitle)
	p.Grid(x, ratio, "Hit ratio, %", left)
	p.Text("", right, ratio.PixelTo-14, "end", "the area above a line is the hits that were lost")
	p.Grid(x, errors, "Operations that failed, per second", left)
	for _, v := range x.Ticks() {
		label := report.Number(v)
		if v > 0 {
			label = "+" + label
		}
		p.Text("", x.At(v), errorsBottom+18, "middle", label)
	}
	p.Text("", (left+right)/2, errorsBottom+37, "middle", "seconds since the change was asked for")
	for _, y := range []report.Axis{ratio, errors} {
		p.Add(`<line class="mark" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x.At(0), x.At(0), y.PixelFrom, y.PixelTo)
	}

	labels := c.labels(ratio)
	for i, s := range slices.Backward(c.series) { // the first on top
		p.Group(i, func() {
			line := report.Path(s.ratio, x, ratio)
			p.Add(`<path class="area" d="%sV%.1fH%.1fZ"/>`, line, ratio.PixelTo, x.At(s.ratio[0].X))
			p.Add(`<path class="line" d="%s"/>`, line)
			p.Add(`<path class="line" d="%s"/>`, report.Path(s.errors, x, errors))
			end := s.ratio[len(s.ratio)-1]
			p.Add(`<path class="leader" d="M%.1f %.1fH%.1fL%.1f %.1f"/>`, x.At(end.X), ratio.At(end.Y), right, right+14, labels[i]-4)
			p.Text("name", right+19, labels[i], "start", s.name)
			for n, note := range s.notes {
				p.Text("", right+19, labels[i]+float64(n+1)*lineHeight, "start", note)
			}
		})
	}
	return p.SVG()
}

// axes fit all series: time to what is there, the hit ratio from the fifth below
// its lowest to 100 %, errors from 0.
func (c chart) axes() (x, ratio, errors report.Axis) {
	x = report.Axis{PixelFrom: left, PixelTo: right}
	ratio = report.Axis{From: 80, To: 100, Step: 20, PixelFrom: ratioBottom, PixelTo: ratioTop}
	most := 0.0
	for _, s := range c.series {
		for _, p := range s.ratio {
			x.From, x.To = min(x.From, p.X), max(x.To, p.X)
			ratio.From = min(ratio.From, ratio.Step*math.Floor(p.Y/ratio.Step))
		}
		for _, p := range s.errors {
			most = max(most, p.Y)
		}
	}
	x.Step = report.Step(x.From, x.To, 10)
	return x, ratio, report.AxisTo(most, 3, errorsBottom, errorsTop)
}

// labels returns where the name of each series is written: beside the end of its
// line, but below the one before it.
func (c chart) labels(ratio report.Axis) []float64 {
	var at []float64
	next := ratioTop
	for _, s := range c.series {
		y := max(next, ratio.At(s.ratio[len(s.ratio)-1].Y)+4)
		at = append(at, y)
		next = y + float64(len(s.notes)+1)*lineHeight + 9
	}
	return at
}
