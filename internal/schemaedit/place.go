package schemaedit

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// place is where a value can be: a field of an object, the items of a list, or the values of a map.
type place struct {
	parent *place
	// path is for example spec.pod.tolerations[].key or spec.pod.nodeSelector{}.
	path string
	// name of the field, if any.
	name   string
	schema *schema.Structural
	// bounds of the values; pattern is the compiled one.
	bounds  schema.ValueValidation
	pattern *regexp.Regexp
	// fields of an object by name; element is each item of a list or each value of a map.
	fields  []*place
	element *place
}

// newPlace returns a place and all places below it.
func newPlace(parent *place, path string, s *schema.Structural) *place {
	p := &place{parent: parent, path: path, schema: s}
	if s.ValueValidation != nil {
		p.bounds = *s.ValueValidation
	}
	if p.bounds.Pattern != "" {
		p.pattern = regexp.MustCompile(p.bounds.Pattern) // the API server accepts no CRD with another one
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		field := newPlace(p, path+"."+name, &property)
		field.name = name
		p.fields = append(p.fields, field)
	}
	if s.Items != nil {
		p.element = newPlace(p, path+"[]", s.Items)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		p.element = newPlace(p, path+"{}", s.AdditionalProperties.Structural)
	}
	return p
}

func (p *place) all() []*place {
	found := []*place{p}
	for _, field := range p.fields {
		found = append(found, field.all()...)
	}
	if p.element != nil {
		found = append(found, p.element.all()...)
	}
	return found
}

// from returns the path from a place above p down to p, without that place.
func (p *place) from(above *place) []*place {
	if p == above {
		return nil
	}
	return append(p.parent.from(above), p)
}

// last returns the part of the path after its last dot, such as key or values[].
func (p *place) last() string {
	return p.path[strings.LastIndex(p.path, ".")+1:]
}

func (p *place) requires(field *place) bool {
	return slices.Contains(p.bounds.Required, field.name)
}

// in returns the places below p that a value has.
func (p *place) in(value any) []*place {
	var found []*place
	switch value := value.(type) {
	case map[string]any:
		for _, field := range p.fields {
			if below, ok := value[field.name]; ok {
				found = append(append(found, field), field.in(below)...)
			}
		}
		if p.element != nil && len(value) > 0 {
			found = append(found, p.element)
			for _, key := range slices.Sorted(maps.Keys(value)) {
				found = append(found, p.element.in(value[key])...)
			}
		}
	case []any:
		if p.element != nil && len(value) > 0 {
			found = append(found, p.element)
			for _, item := range value {
				found = append(found, p.element.in(item)...)
			}
		}
	}
	return found
}
