package schemaedit

import (
	"context"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Edits generates the edits of a user. The same seed and the same specs give the same edits. It is not safe for
// concurrent use.
type Edits struct {
	schema  *Schema
	rng     *rand.Rand
	fields  []*place // that are edited: those of the spec, and of a group in it
	weights []int    // of fields
}

// intent is the intended result of an edit.
type intent int

const (
	valid    intent = iota
	rejected        // by the API server
	doubtful        // rejected by the operator
)

// intents of 100 edits.
var intents = slices.Concat(slices.Repeat([]intent{valid}, 80), slices.Repeat([]intent{rejected}, 12), slices.Repeat([]intent{doubtful}, 8))

// tries is how many edits Next generates until one has the intended result.
const tries = 100

// NewEdits returns a generator that draws from rng. It edits every field of the spec
// except those that the tables give the weight 0.
func (s *Schema) NewEdits(rng *rand.Rand) *Edits {
	e := &Edits{schema: s, rng: rng, fields: editable(s.spec)}
	for _, field := range e.fields {
		e.weights = append(e.weights, known.Weights[field.path])
	}
	return e
}

// editable returns the fields of a place. A field is replaced by its own fields when the
// tables weigh those, so that a group such as spec.pod isn't edited as one field.
func editable(p *place) []*place {
	var found []*place
	for _, field := range p.fields {
		if slices.ContainsFunc(field.fields, func(below *place) bool { _, ok := known.Weights[below.path]; return ok }) {
			found = append(found, editable(field)...)
		} else {
			found = append(found, field)
		}
	}
	return found
}

// Weigh sets how often a field, such as spec.config.threads or spec.pod.affinity, is edited
// compared with the others, most of which have weights from 2 to 12. 0 is never.
func (e *Edits) Weigh(path string, weight int) {
	for i, f := range e.fields {
		if f.path == path {
			e.weights[i] = weight
		}
	}
}

// Next returns an edit of a spec and its description, a JSON merge patch such as {"spec":{"config":{"threads":8}}}. It sets, changes
// or removes one to three fields. Four of five edits are intended to be valid. The API server rejects most of the others,
// and the operator rejects some later, as the description then says. Next does not change the spec.
func (e *Edits) Next(spec map[string]any) (edited map[string]any, story string) {
	old := object(e.schema, runtime.DeepCopyJSON(spec))
	old.Object = e.schema.decode(old.Object)
	intended, because := valid, ""
	for try := range tries {
		if try%10 == 0 {
			intended = pick(e.rng, intents)
		}
		edited = runtime.DeepCopyJSON(spec)
		because = e.edit(edited, intended)
		if reflect.DeepEqual(edited, spec) {
			continue
		}
		_, err := e.schema.Admit(context.Background(), object(e.schema, edited), old)
		if (err != nil) == (intended == rejected) {
			break
		}
	}
	patch, err := client.MergeFrom(object(e.schema, spec)).Data(object(e.schema, edited))
	if err != nil {
		panic(err) // both are JSON
	}
	story = string(patch)
	if because != "" {
		story += " (" + because + ")"
	}
	return edited, story
}

func object(s *Schema, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "edited", "namespace": "default"},
		"spec":     spec,
	}}
	u.SetGroupVersionKind(s.kind)
	return u
}

// edit changes one to three fields of a spec, one of them as intended, and returns why that one is not valid, if so.
func (e *Edits) edit(spec map[string]any, intended intent) string {
	because := ""
	switch intended {
	case rejected:
		e.editInvalid(spec)
		because = "the API server rejects it"
	case doubtful:
		because = e.editDoubtful(spec)
	default:
		e.editValid(spec)
	}
	for range pick(e.rng, []int{0, 0, 0, 0, 0, 0, 1, 1, 1, 2}) {
		e.editValid(spec)
	}
	return because
}

// editValid makes a valid change.
func (e *Edits) editValid(spec map[string]any) {
	top := e.field()
	switch n := e.rng.IntN(100); {
	case n < 20:
		e.remove(spec, top)
	case n < 22: // a typing error: the API server drops unknown fields
		spec[top.name+pick(e.rng, []string{"s", "Name", "_"})] = e.value(top)
	case n < 65:
		e.set(spec, top, e.value)
	default:
		e.set(spec, pick(e.rng, top.all()), e.value)
	}
}

// remove removes a field or something below it, sometimes by a null.
func (e *Edits) remove(spec map[string]any, top *place) {
	var value any = spec
	for _, p := range top.from(e.schema.spec) {
		fields, ok := value.(map[string]any)
		if !ok {
			return
		}
		if value, ok = fields[p.name]; !ok {
			return
		}
	}
	places := append([]*place{top}, top.in(value)...)
	e.write(e.schema.spec, spec, pick(e.rng, places).from(e.schema.spec), func(*place) (any, bool) {
		return nil, e.rng.IntN(8) == 0
	})
}

// editInvalid sets a value that the API server rejects.
func (e *Edits) editInvalid(spec map[string]any) {
	top := e.field()
	e.set(spec, pick(e.rng, []*place{top, pick(e.rng, top.all())}), func(p *place) any {
		invalid := e.invalidValues(p)
		if len(invalid) == 0 {
			return e.value(p)
		}
		// Select the kind first, as the kinds have different numbers of values.
		var kinds []string
		for _, w := range invalid {
			if !slices.Contains(kinds, w.kind) {
				kinds = append(kinds, w.kind)
			}
		}
		kind := pick(e.rng, kinds)
		return pick(e.rng, slices.DeleteFunc(invalid, func(w invalidValue) bool { return w.kind != kind })).value
	})
}

// editDoubtful sets a value that the operator rejects, and returns why.
func (e *Edits) editDoubtful(spec map[string]any) string {
	d := pick(e.rng, known.Doubtful)
	for _, p := range e.schema.spec.all() {
		if p.path == d.Field {
			e.set(spec, p, func(*place) any { return runtime.DeepCopyJSONValue(d.Value) })
			return d.Because
		}
	}
	return ""
}

// field returns a field to edit.
func (e *Edits) field() *place {
	sum := 0
	for _, weight := range e.weights {
		sum += weight
	}
	n := e.rng.IntN(sum)
	for i, weight := range e.weights {
		if n -= weight; n < 0 {
			return e.fields[i]
		}
	}
	panic("the weights do not add up")
}

// set writes a value to a place and creates its parents.
func (e *Edits) set(spec map[string]any, p *place, value func(*place) any) {
	e.write(e.schema.spec, spec, p.from(e.schema.spec), func(p *place) (any, bool) { return value(p), true })
}

// write returns the value of a place after make replaced or removed the value at the end of the path below it. Objects
// and lists are changed in place. Of the items of a list and the values of a map it selects one or adds one.
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
			name = pick(e.rng, slices.Sorted(maps.Keys(fields)))
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

func pick[T any](rng *rand.Rand, values []T) T {
	return values[rng.IntN(len(values))]
}
