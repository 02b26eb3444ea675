package schemaedit

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiserver/pkg/cel/common"
)

// correlated is a schema by which an object and the one before are walked together.
// The library's own makes its fields anew each time one of them is looked up, which
// was a third of the time of an update.
type correlated struct {
	*model.Structural
	properties map[string]common.Schema
	items      common.Schema
	additional common.SchemaOrBool
}

func newCorrelated(s *schema.Structural) *correlated {
	c := &correlated{Structural: &model.Structural{Structural: s}}
	if s.Properties != nil {
		c.properties = make(map[string]common.Schema, len(s.Properties))
	}
	for name, property := range s.Properties {
		c.properties[name] = newCorrelated(&property)
	}
	if s.Items != nil {
		c.items = newCorrelated(s.Items)
	}
	if s.AdditionalProperties != nil {
		c.additional = newCorrelatedValues(s.AdditionalProperties)
	}
	return c
}

func (c *correlated) Properties() map[string]common.Schema      { return c.properties }
func (c *correlated) Items() common.Schema                      { return c.items }
func (c *correlated) AdditionalProperties() common.SchemaOrBool { return c.additional }

// correlatedValues is the schema of the values of a map.
type correlatedValues struct {
	*model.StructuralOrBool
	schema common.Schema
}

func newCorrelatedValues(s *schema.StructuralOrBool) *correlatedValues {
	c := &correlatedValues{StructuralOrBool: &model.StructuralOrBool{StructuralOrBool: s}}
	if s.Structural != nil {
		c.schema = newCorrelated(s.Structural)
	}
	return c
}

func (c *correlatedValues) Schema() common.Schema { return c.schema }
