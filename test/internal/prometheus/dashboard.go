package prometheus

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// Dashboard is what is read of a dashboard of Grafana.
type Dashboard struct {
	Title  string
	Panels []Panel
}

// Panel is a panel, or a row of them.
type Panel struct {
	Title, Type string
	Targets     []struct{ Expr, LegendFormat string }
	// Panels of a row that is collapsed.
	Panels      []Panel
	FieldConfig struct{ Defaults struct{ Unit string } }
}

// ParseDashboard reads a dashboard.
func ParseDashboard(content []byte) (Dashboard, error) {
	var d Dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		return d, fmt.Errorf("reading a dashboard: %w", err)
	}
	if len(d.AllPanels()) == 0 {
		return d, fmt.Errorf("the dashboard %q has no panels", d.Title)
	}
	return d, nil
}

// AllPanels returns the panels, those of collapsed rows included, without the rows.
func (d Dashboard) AllPanels() []Panel {
	var all []Panel
	for _, p := range d.Panels {
		if p.Type != "row" {
			all = append(all, p)
		}
		all = append(all, p.Panels...)
	}
	return all
}

// Recording is a dashboard with the data of its queries, by expression.
type Recording struct {
	Dashboard   Dashboard
	From, Until time.Time
	Data        map[string][]Series
}

// Record returns the data that query has for each expression of the dashboard, without values that are not numbers.
func (d Dashboard) Record(from, until time.Time, query func(string) []Series) Recording {
	r := Recording{Dashboard: d, From: from, Until: until, Data: map[string][]Series{}}
	for _, p := range d.AllPanels() {
		for _, target := range p.Targets {
			var all []Series
			for _, s := range query(target.Expr) {
				s.Points = slices.DeleteFunc(slices.Clone(s.Points), func(p Point) bool { return math.IsNaN(p.Value) || math.IsInf(p.Value, 0) })
				if len(s.Points) > 0 {
					all = append(all, s)
				}
			}
			r.Data[target.Expr] = all
		}
	}
	return r
}
