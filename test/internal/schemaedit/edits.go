package schemaedit

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Edits makes up the edits of a person. The same seed and the same specs give the
// same edits. It is not safe for concurrent use.
type Edits struct {
	schema  *Schema
	rng     *rand.Rand
	weights []int // of the spec's fields
}

// intent is what shall become of an edit.
type intent int

const (
	taken   intent = iota
	refused        // by the API server
	doubted        // taken by it, and refused later
)

// intents in a hundred edits.
var intents = slices.Concat(slices.Repeat([]intent{taken}, 80), slices.Repeat([]intent{refused}, 12), slices.Repeat([]intent{doubted}, 8))

// tries is how often another edit is made up when one does not become what it was
// meant to be.
const tries = 100

// NewEdits returns a generator that draws from rng. It edits every field of the spec
// but those of which the tables say that their weight is nothing.
func (s *Schema) NewEdits(rng *rand.Rand) *Edits {
	e := &Edits{schema: s, rng: rng}
	for _, field := range s.spec.fields {
		weight, ok := known.Weights[field.name]
		if !ok {
			weight = defaultWeight
		}
		e.weights = append(e.weights, weight)
	}
	return e
}

// Weigh sets how often a field of the spec is edited beside the others, most of which
// weigh from 2 to 12: 0 is never.
func (e *Edits) Weigh(field string, weight int) {
	for i, f := range e.schema.spec.fields {
		if f.name == field {
			e.weights[i] = weight
		}
	}
}

// Next returns an edit of a spec and what was edited, such as "spec.threads: 4 → 8".
// One to three fields are set, changed or removed. Four of five edits are ones that a
// person would mean; of the others the API server refuses most, and some it takes
// though they are refused later, as the story then says. The spec is not changed.
func (e *Edits) Next(spec map[string]any) (edited map[string]any, story string) {
	old := object(e.schema, runtime.DeepCopyJSON(spec))
	old.Object = e.schema.decode(old.Object)
	meant, because := taken, ""
	for try := range tries {
		if try%10 == 0 {
			meant = pick(e.rng, intents)
		}
		edited = runtime.DeepCopyJSON(spec)
		because = e.edit(edited, meant)
		if reflect.DeepEqual(edited, spec) {
			continue
		}
		_, err := e.schema.Admit(context.Background(), object(e.schema, edited), old)
		if (err != nil) == (meant == refused) {
			break
		}
	}
	story = tell(spec, edited)
	if because != "" {
		story += " (" + because + ")"
	}
	return edited, story
}

// object returns an object with a spec, of a name that no rule minds.
func object(s *Schema, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "edited", "namespace": "default"},
		"spec":     spec,
	}}
	u.SetGroupVersionKind(s.kind)
	return u
}

// edit changes one to three fields of a spec, one of them as it is meant, and returns
// why that one is not what a person would mean, if so.
func (e *Edits) edit(spec map[string]any, meant intent) string {
	because := ""
	switch meant {
	case refused:
		e.spoil(spec)
		because = "the API server refuses it"
	case doubted:
		because = e.doubt(spec)
	default:
		e.mean(spec)
	}
	for range pick(e.rng, []int{0, 0, 0, 0, 0, 0, 1, 1, 1, 2}) {
		e.mean(spec)
	}
	return because
}

// mean makes a change that a person would.
func (e *Edits) mean(spec map[string]any) {
	top := e.field()
	switch n := e.rng.IntN(100); {
	case n < 20:
		e.remove(spec, top)
	case n < 22: // a slip of the pen: what the schema does not know is dropped
		spec[top.name+pick(e.rng, []string{"s", "Name", "_"})] = e.value(top)
	case n < 65:
		spec[top.name] = e.value(top)
	default:
		e.set(spec, pick(e.rng, top.all()), e.value)
	}
}

// remove takes a field or something below it away, by a null now and then.
func (e *Edits) remove(spec map[string]any, top *place) {
	value, ok := spec[top.name]
	if !ok {
		return
	}
	places := append([]*place{top}, top.in(value)...)
	e.write(e.schema.spec, spec, pick(e.rng, places).from(e.schema.spec), func(*place) (any, bool) {
		return nil, e.rng.IntN(8) == 0
	})
}

// spoil puts a value somewhere that the API server refuses.
func (e *Edits) spoil(spec map[string]any) {
	e.set(spec, pick(e.rng, e.field().all()), func(p *place) any {
		wrongs := e.wrongs(p)
		if len(wrongs) == 0 {
			return e.value(p)
		}
		// Each way as often as any other, however many values there are for it.
		var ways []string
		for _, w := range wrongs {
			if !slices.Contains(ways, w.way) {
				ways = append(ways, w.way)
			}
		}
		way := pick(e.rng, ways)
		return pick(e.rng, slices.DeleteFunc(wrongs, func(w wrong) bool { return w.way != way })).value
	})
}

// doubt puts a value somewhere that is refused later, and returns why.
func (e *Edits) doubt(spec map[string]any) string {
	d := pick(e.rng, known.Doubtful)
	for _, p := range e.schema.spec.all() {
		if p.path == d.Field {
			e.set(spec, p, func(*place) any { return runtime.DeepCopyJSONValue(d.Value) })
			return d.Because
		}
	}
	return ""
}

// field returns a field of the spec.
func (e *Edits) field() *place {
	sum := 0
	for _, weight := range e.weights {
		sum += weight
	}
	n := e.rng.IntN(sum)
	for i, weight := range e.weights {
		if n -= weight; n < 0 {
			return e.schema.spec.fields[i]
		}
	}
	panic("the weights do not add up")
}

// set writes a value to a place, and what has to be there above it.
func (e *Edits) set(spec map[string]any, p *place, value func(*place) any) {
	e.write(e.schema.spec, spec, p.from(e.schema.spec), func(p *place) (any, bool) { return value(p), true })
}

// write returns what a place holds once the value at the end of the way below it was
// made anew, or was taken away when make says so. Objects and lists are changed in
// place as far as they are there; of the items of a list and the values of a map one
// is chosen, or one more is made.
func (e *Edits) write(p *place, have any, way []*place, make func(*place) (value any, keep bool)) (any, bool) {
	if len(way) == 0 {
		return make(p)
	}
	next, way := way[0], way[1:]
	if p.schema.Type == "array" {
		items, _ := have.([]any)
		i := e.rng.IntN(len(items) + 1)
		if i == len(items) {
			items = append(items, nil)
		}
		value, keep := e.write(next, items[i], way, make)
		if !keep {
			return slices.Delete(items, i, i+1), true
		}
		items[i] = value
		return items, true
	}
	fields, ok := have.(map[string]any)
	if !ok {
		fields = e.object(p, next)
	}
	name := next.name
	if name == "" {
		if name = e.key(next); len(fields) > 0 && e.rng.IntN(4) > 0 {
			name = pick(e.rng, sortedKeys(fields))
		}
	}
	value, keep := e.write(next, fields[name], way, make)
	if !keep {
		delete(fields, name)
		return fields, true
	}
	fields[name] = value
	return fields, true
}

// pick returns one of the values.
func pick[T any](rng *rand.Rand, values []T) T {
	return values[rng.IntN(len(values))]
}
