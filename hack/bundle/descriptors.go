package main

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A console shows a field by its descriptor: see
// https://github.com/openshift/console/blob/main/frontend/packages/operator-lifecycle-manager/src/components/descriptors/reference/reference.md
const (
	widget   = "urn:alm:descriptor:com.tectonic.ui:"
	advanced = widget + "advanced"
	text     = widget + "text"
	k8s      = "urn:alm:descriptor:io.kubernetes."
	anyOf    = "urn:alm:descriptor:io.kubernetes:"
)

// Fields that have a widget of their own; the others get the one of their type.
var (
	specWidgets = map[string][]string{
		"size":            {widget + "podCount"},
		"resources":       {widget + "resourceRequirements"},
		"imagePullPolicy": {widget + "imagePullPolicy", advanced},
		// These are in affinity.
		"nodeAffinity":    {widget + "nodeAffinity", advanced},
		"podAffinity":     {widget + "podAffinity", advanced},
		"podAntiAffinity": {widget + "podAntiAffinity", advanced},
		// These are in stores of snapshots; a console lists what there is of the kind.
		"claimName":         {anyOf + "PersistentVolumeClaim"},
		"credentialsSecret": {anyOf + "Secret"},
		"caSecret":          {anyOf + "Secret"},
	}
	statusWidgets = map[string][]string{
		"conditions": {k8s + "conditions"},
		"phase":      {k8s + "phase"},
	}
)

// specDescriptors describes every key of a spec in the words of its schema, and of
// what is below it that which has a widget of its own. Below a structure that must
// be filled in it describes everything.
func specDescriptors(schema apiextensionsv1.JSONSchemaProps) []v1alpha1.SpecDescriptor {
	var out []v1alpha1.SpecDescriptor
	describe := func(path, key string, property apiextensionsv1.JSONSchemaProps, widgets []string) {
		out = append(out, v1alpha1.SpecDescriptor{Path: path, DisplayName: words(key), Description: sentences(property), XDescriptors: widgets})
	}
	var below func(path string, all bool, schema apiextensionsv1.JSONSchemaProps)
	below = func(path string, all bool, schema apiextensionsv1.JSONSchemaProps) {
		for _, key := range slices.Sorted(maps.Keys(schema.Properties)) {
			path, property := path+"."+key, schema.Properties[key]
			widgets, found := specWidgets[key]
			if !found && all && property.Type != "object" {
				widgets, found = widgetsOf(property), true
			}
			if found {
				describe(path, key, property, widgets)
			}
			below(path, all, property)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[key]
		required := slices.Contains(schema.Required, key)
		widgets, found := specWidgets[key]
		switch {
		case found:
		case required && property.Type == "object":
			widgets = []string{widget + "fieldGroup:" + key}
		default:
			widgets = widgetsOf(property)
		}
		describe(key, key, property, widgets)
		below(key, required, property)
	}
	return out
}

// statusDescriptors describes every key of a status. There, all is shown as text
// that has no widget of its own.
func statusDescriptors(schema apiextensionsv1.JSONSchemaProps) []v1alpha1.StatusDescriptor {
	var out []v1alpha1.StatusDescriptor
	for _, key := range slices.Sorted(maps.Keys(schema.Properties)) {
		widgets, found := statusWidgets[key]
		if !found {
			widgets = []string{text}
		}
		out = append(out, v1alpha1.StatusDescriptor{Path: key, DisplayName: words(key), Description: sentences(schema.Properties[key]), XDescriptors: widgets})
	}
	return out
}

// widgetsOf is how a spec's field of this type is entered. Structures are for
// those who know them.
func widgetsOf(property apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case property.Type == "boolean":
		return []string{widget + "booleanSwitch"}
	case property.Type == "integer":
		return []string{widget + "number"}
	case property.Type == "string" || property.XIntOrString:
		return []string{text}
	}
	return []string{advanced}
}

// words turns a key into a title: maxItemSize into "Max Item Size", maxTTL into
// "Max TTL".
func words(key string) string {
	var out strings.Builder
	before := 'A'
	for i, letter := range key {
		switch {
		case i == 0:
			out.WriteRune(unicode.ToUpper(letter))
		case unicode.IsUpper(letter) && !unicode.IsUpper(before):
			out.WriteByte(' ')
			fallthrough
		default:
			out.WriteRune(letter)
		}
		before = letter
	}
	return out.String()
}

// sentences is a field's description on one line.
func sentences(property apiextensionsv1.JSONSchemaProps) string {
	return strings.Join(strings.Fields(property.Description), " ")
}
