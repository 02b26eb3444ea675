package metrics

import (
	"math"
	"strconv"
	"strings"
)

// ContentType is that of an answer. Prometheus refuses an answer without one.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// writer appends lines of the text format.
type writer struct {
	text []byte
	// name is that of the metric whose HELP and TYPE were written last.
	name string
}

// Append appends the metrics to text, those of each slab class if classes is true.
func Append(text []byte, in *Input, classes bool) []byte {
	w := &writer{text: text}
	if in.Reading != nil {
		for i := range families {
			if f := &families[i]; classes || !f.Classes {
				w.rows(f, in.Reading)
			}
		}
	}
	w.agent(in)
	return w.text
}

// enabled is the LRU crawler's switch.
var enabled = slot("settings:lru_crawler")

func (w *writer) rows(f *Family, r *Reading) {
	if f.crawler && r.class[0].values[enabled] != 1 {
		return
	}
	if len(f.Labels) == 0 || f.Labels[0] != "slab" {
		for _, row := range f.rows {
			w.sample(f.Name, row.labels, r.class[0].sum(row.plus, row.minus))
		}
		return
	}
	for _, n := range r.numbers {
		label := classLabel(n)
		for _, row := range f.rows {
			value := r.class[n].sum(row.plus, row.minus)
			if row.labels == "" {
				w.sample(f.Name, label, value)
			} else {
				w.sample(f.Name, label+","+row.labels, value)
			}
		}
	}
}

func classLabel(class int) string { return `slab="` + strconv.Itoa(class) + `"` }

// escapes are those of a label's value.
var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func label(name, value string) string {
	return name + `="` + escapes.Replace(strings.ToValidUTF8(value, "\uFFFD")) + `"`
}

// head begins a metric.
func (w *writer) head(name string) {
	if w.name != name {
		w.text = append(w.text, heads[name]...)
		w.name = name
	}
}

// sample appends one series of a metric; labels is what stands in braces. One that is NaN
// is unknown, and omitted.
func (w *writer) sample(name, labels string, value float64) {
	if !math.IsNaN(value) {
		w.head(name)
		w.line(name, labels, value)
	}
}

func (w *writer) line(name, labels string, value float64) {
	w.text = append(w.text, name...)
	if labels != "" {
		w.text = append(w.text, '{')
		w.text = append(w.text, labels...)
		w.text = append(w.text, '}')
	}
	w.text = append(w.text, ' ')
	if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
		w.text = strconv.AppendInt(w.text, int64(value), 10)
	} else {
		w.text = strconv.AppendFloat(w.text, value, 'g', -1, 64)
	}
	w.text = append(w.text, '\n')
}
