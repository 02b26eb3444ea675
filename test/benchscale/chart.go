package main

import (
	"math"

	"github.com/memcached-operator/memcached-operator/test/internal/report"
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
	points []report.Point
}

// The layout, in pixels of a picture that is 900 wide.
const (
	width, height = 900.0, 380.0
	top, bottom   = 100.0, 320.0
	// of a panel, from its left
	panelWidth, plotLeft, plotRight = 440.0, 62.0, 282.0
	lineHeight                      = 16.0
)

// svg draws the chart.
func (c chart) svg() []byte {
	p := report.NewPicture(width, height, c.title, c.subtitle)
	for i, panel := range c.panels {
		panel.draw(p, 10+float64(i)*panelWidth)
	}
	return p.SVG()
}

// draw draws a panel from a left edge on.
func (a panel) draw(p *report.Picture, left float64) {
	var most report.Point
	for _, s := range a.series {
		for _, at := range s.points {
			most.X, most.Y = max(most.X, at.X), max(most.Y, at.Y)
		}
	}
	x, y := report.AxisTo(most.X, 5, left+plotLeft, left+plotRight), report.AxisTo(most.Y, 5, bottom, top)
	p.Grid(x, y, a.what, left+10)
	for _, v := range x.Ticks() {
		p.Text("", x.At(v), bottom+18, "middle", report.Number(v))
	}
	p.Text("", (x.PixelFrom+x.PixelTo)/2, bottom+38, "middle", "Memcacheds")
	labels := a.labels(y)
	for i, s := range a.series {
		if len(s.points) == 0 {
			continue
		}
		p.Group(i, func() {
			p.Add(`<path class="line" d="%s"/>`, report.Path(s.points, x, y))
			for _, at := range s.points {
				p.Add(`<circle cx="%.1f" cy="%.1f" r="3.2"/>`, x.At(at.X), y.At(at.Y))
			}
			last := s.points[len(s.points)-1]
			p.Text("label", x.At(last.X)+9, labels[i], "start", s.name+", "+report.Number(last.Y))
		})
	}
}

// labels returns where the name of each series is written: beside the end of its
// line, but none over another.
func (a panel) labels(y report.Axis) []float64 {
	at := make([]float64, len(a.series))
	for i, s := range a.series {
		if len(s.points) == 0 {
			continue
		}
		at[i] = y.At(s.points[len(s.points)-1].Y) + 4
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
