package metrics

import (
	_ "embed"
	"slices"
	"strings"
)

// table has all metrics. A metric begins with
//
//	TYPE NAME {LABELS} FLAGS | HELP
//
// The name is without the prefix memcached_. Flags: "exporter" if memcached_exporter has
// the metric, "classes" if an answer contains it with the slab classes only, "crawler" if
// it needs the LRU crawler. One line for each series follows, or for each one of a slab
// class: the labels besides slab, or -, and stats with their signs, as GROUP:STAT. A
// series without one of its stats is omitted. The agent's code writes the metrics
// without such a line.
//
// A table in Go would make the agent 100 KB larger.
//
//go:embed families.txt
var table string

// Family describes one metric.
type Family struct {
	Name, Type, Help string
	// Labels are their names.
	Labels []string
	// Classes is whether the metric has a series per slab class, which an answer
	// contains on request only.
	Classes bool
	// Exporter is whether memcached_exporter has the metric, too.
	Exporter bool

	crawler bool
	rows    []row
}

// row is a series, or a series per slab class. Its value is the sum of the stats plus less
// those of minus.
type row struct {
	labels      string
	plus, minus []int
}

// Requests to memcached, by the numbers that the slots have.
const (
	settings = 1 + iota
	slabs
	items
)

var (
	requests = [...]string{"stats", "stats settings", "stats slabs", "stats items"}
	// groups are the names of the requests in the table.
	groups = [len(requests)]string{"stats", "settings", "slabs", "items"}
	// slots are the places of stats in the values of a reading, by request and name.
	slots = [len(requests)]map[string]int{{}, {}, {}, {}}
	// slotCount is their number.
	slotCount int
)

// families are in the order of an answer. heads has their HELP and TYPE by name.
var (
	families = parseTable(table)
	heads    = headsOf(families)
)

// Families returns all metrics.
func Families() []Family { return slices.Clone(families) }

func slot(stat string) int {
	group, name, _ := strings.Cut(stat, ":")
	places := slots[slices.Index(groups[:], group)]
	at, ok := places[name]
	if !ok {
		at = slotCount
		places[name] = at
		slotCount++
	}
	return at
}

func parseTable(table string) []Family {
	var all []Family
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if line[0] == '\t' {
			f := &all[len(all)-1]
			f.rows = append(f.rows, parseRow(words))
			continue
		}
		_, help, _ := strings.Cut(line, " | ")
		f := Family{Type: words[0], Name: "memcached_" + words[1], Help: strings.TrimSpace(help)}
		if labels := strings.Trim(words[2], "{}"); labels != "" {
			f.Labels = strings.Split(labels, ",")
		}
		for _, flag := range words[3:slices.Index(words, "|")] {
			switch flag {
			case "exporter":
				f.Exporter = true
			case "classes":
				f.Classes = true
			case "crawler":
				f.crawler = true
			}
		}
		all = append(all, f)
	}
	return all
}

func parseRow(words []string) row {
	r := row{labels: strings.TrimPrefix(words[0], "-")}
	for _, word := range words[1:] {
		if at := slot(word[1:]); word[0] == '+' {
			r.plus = append(r.plus, at)
		} else {
			r.minus = append(r.minus, at)
		}
	}
	return r
}

func headsOf(families []Family) map[string]string {
	all := make(map[string]string, len(families))
	for _, f := range families {
		all[f.Name] = "# HELP " + f.Name + " " + f.Help + "\n# TYPE " + f.Name + " " + f.Type + "\n"
	}
	return all
}

// Sources returns from which answers of memcached a metric comes, as the protocol's
// commands with the stats; empty if the agent knows the value.
func (f *Family) Sources() []string {
	var sources []string
	for request, places := range slots {
		var stats []string
		for name, at := range places {
			if slices.ContainsFunc(f.rows, func(r row) bool { return slices.Contains(r.plus, at) || slices.Contains(r.minus, at) }) {
				stats = append(stats, name)
			}
		}
		if slices.Sort(stats); len(stats) > 0 {
			sources = append(sources, "`"+requests[request]+"`: "+strings.Join(stats, ", "))
		}
	}
	return sources
}

// Counter is the type of a metric that only grows.
const Counter = "counter"
