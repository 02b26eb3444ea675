package schemaedit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// words are strings for fields without a pattern.
var words = []string{"blue", "green", "red", "web", "cache", "a", "b-2"}

// value returns a value that the tables prefer or, if they have none, one of the schema. It does not check rules.
func (e *Edits) value(p *place) any {
	if preferred := of(known.Preferred, p); len(preferred) > 0 {
		return runtime.DeepCopyJSONValue(pick(e.rng, preferred))
	}
	return e.described(p)
}

// described returns a value of the schema.
func (e *Edits) described(p *place) any {
	s, bounds := p.schema, &p.bounds
	switch {
	case len(bounds.Enum) > 0:
		return runtime.DeepCopyJSONValue(pick(e.rng, bounds.Enum).Object)
	case s.XIntOrString && e.rng.IntN(2) == 0:
		return e.whole(p)
	case s.XIntOrString:
		return e.text(p)
	}
	switch s.Type {
	case "object":
		return e.object(p, nil)
	case "array":
		items := make([]any, 0, 2)
		for range e.count(bounds.MaxItems) {
			items = append(items, e.value(p.element))
		}
		return items
	case "boolean":
		return e.rng.IntN(2) == 0
	case "integer":
		return e.whole(p)
	default:
		return e.text(p)
	}
}

// object returns an object of the required fields except for one, and of some others unless that one is given.
func (e *Edits) object(p, but *place) map[string]any {
	object := map[string]any{}
	for _, field := range p.fields {
		if field != but && (p.requires(field) || but == nil && e.rng.IntN(3) == 0) {
			object[field.name] = e.value(field)
		}
	}
	if p.element != nil && but == nil {
		for range e.count(p.bounds.MaxProperties) {
			object[e.key(p.element)] = e.value(p.element)
		}
	}
	return object
}

func (e *Edits) key(p *place) string {
	if keys := of(known.Keys, p); len(keys) > 0 {
		return pick(e.rng, keys)
	}
	return pick(e.rng, words)
}

// count returns a number of items: one or two, if so many are allowed.
func (e *Edits) count(most *int64) int64 {
	n := 1 + e.rng.Int64N(2)
	if most != nil {
		n = min(n, *most)
	}
	return n
}

// whole returns an integer within the bounds: one of the bounds, or a number that is more often near the lower one.
func (e *Edits) whole(p *place) int64 {
	least, most := e.bounds(p)
	switch e.rng.IntN(6) {
	case 0:
		return least
	case 1:
		return most
	}
	span := float64(most) - float64(least)
	return least + int64(math.Expm1(e.rng.Float64()*math.Log1p(span)))
}

func (e *Edits) bounds(p *place) (least, most int64) {
	bounds := &p.bounds
	least, most = 0, math.MaxInt32
	if bounds.Maximum != nil {
		most = int64(*bounds.Maximum)
	}
	least = min(least, most)
	if bounds.Minimum != nil {
		least = int64(*bounds.Minimum)
	}
	return least, max(least, most)
}

// text returns a string of the length of the schema. The tables have values for fields with a pattern.
func (e *Edits) text(p *place) string {
	bounds := &p.bounds
	text := pick(e.rng, words)
	if bounds.MinLength != nil {
		text += strings.Repeat("x", max(0, int(*bounds.MinLength)-len(text)))
	}
	if bounds.MaxLength != nil && int64(len(text)) > *bounds.MaxLength {
		text = text[:*bounds.MaxLength]
	}
	return text
}

// invalidValue is a value that the API server rejects, and what kind of error it is.
type invalidValue struct {
	kind  string
	value any
}

// invalidValues returns values for a place that the API server rejects by the schema or the tables.
func (e *Edits) invalidValues(p *place) []invalidValue {
	s, bounds := p.schema, &p.bounds
	var found []invalidValue
	add := func(kind string, value any) { found = append(found, invalidValue{kind, value}) }
	for _, value := range of(known.Rejected, p) {
		add("rule", runtime.DeepCopyJSONValue(value))
	}
	if len(bounds.Enum) > 0 {
		add("enum", "Sometimes")
	}
	switch {
	case s.XIntOrString:
		add("type", true)
		add("type", []any{e.value(p)})
	case s.Type == "object":
		add("type", "text")
		add("type", []any{})
		for _, field := range p.fields {
			if p.requires(field) {
				object := e.object(p, nil)
				delete(object, field.name)
				add("required", object)
			}
		}
		if most := bounds.MaxProperties; most != nil {
			object := map[string]any{}
			for i := range *most + 1 {
				object[fmt.Sprint("key-", i)] = e.value(p.element)
			}
			add("bound", object)
		}
	case s.Type == "array":
		add("type", "text")
		add("type", map[string]any{})
		if most := bounds.MaxItems; most != nil {
			add("bound", slices.Repeat([]any{e.value(p.element)}, int(*most)+1))
		}
	case s.Type == "boolean":
		add("type", "yes")
		add("type", int64(1))
	case s.Type == "integer":
		add("type", "many")
		add("type", true)
		add("type", float64(e.whole(p))+0.5)
		least, most := e.bounds(p)
		if bounds.Minimum != nil {
			add("bound", least-1)
		}
		if bounds.Maximum != nil {
			add("bound", most+1)
			add("bound", int64(math.MaxInt32)+1)
		}
	case s.Type == "string":
		add("type", int64(1))
		add("type", map[string]any{})
	}
	if s.Type == "string" || s.XIntOrString {
		if p.pattern != nil {
			for _, text := range []string{"", " ", "-", "any thing", fmt.Sprint(e.value(p), "\n"), fmt.Sprint("!", e.value(p))} {
				if !p.pattern.MatchString(text) {
					add("pattern", text)
				}
			}
		}
		if most := bounds.MaxLength; most != nil {
			add("bound", strings.Repeat("a", int(*most)+1))
		}
		if least := bounds.MinLength; least != nil && *least > 0 {
			add("bound", "")
		}
	}
	return found
}
