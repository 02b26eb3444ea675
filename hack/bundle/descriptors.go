package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Descriptors of the OpenShift console, see its file descriptors/reference/reference.md.
const (
	widget   = "urn:alm:descriptor:com.tectonic.ui:"
	advanced = widget + "advanced"
	text     = widget + "text"
	k8s      = "urn:alm:descriptor:io.kubernetes."
	anyOf    = "urn:alm:descriptor:io.kubernetes:"
)

// A console shows the fields in the order of their descriptors: these first, then required fields, the others, and
// structures, each by name.
var first = []string{"size", "memory", "version", "memcachedRef", "schedule"}

// Fields that have a widget of their own; the others get the one of their type.
var (
	specWidgets = map[string][]string{
		"size":            {widget + "podCount"},
		"resources":       {widget + "resourceRequirements"},
		"imagePullPolicy": {widget + "imagePullPolicy", advanced},
		// In affinity.
		"nodeAffinity":    {widget + "nodeAffinity", advanced},
		"podAffinity":     {widget + "podAffinity", advanced},
		"podAntiAffinity": {widget + "podAntiAffinity", advanced},
		// These are in stores of snapshots; a console lists the objects of that kind.
		"claimName":             {anyOf + "PersistentVolumeClaim"},
		"credentialsSecretName": {anyOf + "Secret"},
		"caSecretName":          {anyOf + "Secret"},
	}
	statusWidgets = map[string][]string{
		"conditions": {k8s + "conditions"},
		"phase":      {k8s + "phase"},
	}
)

// specDescriptors describes every key of a spec, those below it that have a widget or a choice of values, and all of a
// required structure.
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
			if !found && (all && property.Type != "object" || len(property.Enum) > 0) {
				widgets, found = widgetsOf(property), true
			}
			if found {
				describe(path, key, property, widgets)
			}
			below(path, all, property)
		}
	}
	keys := slices.Sorted(maps.Keys(schema.Properties))
	slices.SortStableFunc(keys, func(a, b string) int { return rank(schema, a) - rank(schema, b) })
	for _, key := range keys {
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

// widgetsOf returns the widgets for the type of a field in a spec. Structures are advanced.
func widgetsOf(property apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case property.Type == "boolean":
		return []string{widget + "booleanSwitch"}
	case property.Type == "integer":
		return []string{widget + "number"}
	case len(property.Enum) > 0:
		var options []string
		for _, value := range property.Enum {
			options = append(options, widget+"select:"+strings.Trim(string(value.Raw), `"`))
		}
		return options
	case property.Type == "string" || property.XIntOrString:
		return []string{text}
	}
	return []string{advanced}
}

// rank returns the place of a key among those that come first, or that of its group after them.
func rank(schema apiextensionsv1.JSONSchemaProps, key string) int {
	switch i := slices.Index(first, key); {
	case i >= 0:
		return i
	case slices.Contains(schema.Required, key):
		return len(first)
	case slices.Contains(widgetsOf(schema.Properties[key]), advanced):
		return len(first) + 2
	}
	return len(first) + 1
}

// initialisms are words of keys that a title writes in capitals.
var initialisms = []string{"ca", "fs", "s3", "tls", "ttl", "uid"}

// words turns a key into a title: maxItemSize into "Max Item Size", caSecretName into
// "CA Secret Name".
func words(key string) string {
	var all []string
	for word := range strings.SplitSeq(acronym.ReplaceAllString(camel.ReplaceAllString(key, "$1 $2"), "$1 $2"), " ") {
		if slices.Contains(initialisms, strings.ToLower(word)) {
			all = append(all, strings.ToUpper(word))
		} else {
			all = append(all, strings.ToUpper(word[:1])+word[1:])
		}
	}
	return strings.Join(all, " ")
}

// Where a word ends and the next one begins, as in maxTTL and in TTLSeconds.
var (
	camel   = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	acronym = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// sentences is a field's description on one line.
func sentences(property apiextensionsv1.JSONSchemaProps) string {
	return strings.Join(strings.Fields(property.Description), " ")
}
