package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the CRDs in the order of the page.
var kinds = []string{"memcacheds", "memcachedbackups", "memcachedscheduledbackups", "memcachedrestores"}

// foreign are fields of Kubernetes' own types, and where its reference describes those.
var foreign = map[string]string{
	"affinity":                  "affinity-v1-core",
	"allowedClients":            "networkpolicypeer-v1-networking-k8s-io",
	"allowedScrapers":           "networkpolicypeer-v1-networking-k8s-io",
	"appArmorProfile":           "apparmorprofile-v1-core",
	"conditions":                "condition-v1-meta",
	"imagePullSecrets":          "localobjectreference-v1-core",
	"seLinuxOptions":            "selinuxoptions-v1-core",
	"seccompProfile":            "seccompprofile-v1-core",
	"tolerations":               "toleration-v1-core",
	"topologySpreadConstraints": "topologyspreadconstraint-v1-core",
}

// field is a section of the page.
type field struct {
	path     string // as "kubectl explain" takes it
	required bool
	*apiextensionsv1.JSONSchemaProps
	// fields is the schema that has the fields below it: that of a list's elements, or its own.
	fields *apiextensionsv1.JSONSchemaProps
}

func (f field) depth() int { return strings.Count(f.path, ".") }

// shape is equal for all fields that have the same fields, and empty without fields.
func (f field) shape() string {
	if len(f.fields.Properties) == 0 {
		return ""
	}
	shape, _ := json.Marshal([]any{f.fields.Properties, f.fields.Required}) // which was decoded
	return string(shape)
}

// flatten returns a field and those below it.
func flatten(path string, schema *apiextensionsv1.JSONSchemaProps, required bool) []field {
	f := field{path, required, schema, schema}
	if schema.Items != nil && schema.Items.Schema != nil {
		f.fields = schema.Items.Schema
	}
	all := []field{f}
	for _, name := range slices.Sorted(maps.Keys(f.fields.Properties)) {
		if below := f.fields.Properties[name]; f.depth() > 0 || name == "spec" || name == "status" {
			all = append(all, flatten(path+"."+name, &below, slices.Contains(f.fields.Required, name))...)
		}
	}
	return all
}

var kubernetesModule = regexp.MustCompile(`(?m)^\tk8s\.io/api v0\.([0-9]+)\.`)

// apiReference returns the page about the CRDs of the repository at root.
func apiReference(root string) (string, error) {
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	kubernetes := kubernetesModule.FindSubmatch(module)[1]
	var all []field
	titles := map[string]string{}
	for _, plural := range kinds {
		raw, err := os.ReadFile(filepath.Join(root, "config", "crd", "bases", "cache.memcached-operator.io_"+plural+".yaml"))
		if err != nil {
			return "", fmt.Errorf("reading a CRD: %w", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			return "", fmt.Errorf("reading the CRD %s: %w", plural, err)
		}
		version, names := crd.Spec.Versions[0], crd.Spec.Names
		titles[names.Singular] = fmt.Sprintf("## %s\n\n`apiVersion: %s/%s`, short name `%s`.", names.Kind, crd.Spec.Group, version.Name, strings.Join(names.ShortNames, "`, `"))
		all = append(all, flatten(names.Singular, version.Schema.OpenAPIV3Schema, false)...)
	}
	// A list of fields is described where its path is shortest.
	homes := map[string]string{}
	for _, f := range slices.SortedStableFunc(slices.Values(all), func(a, b field) int { return a.depth() - b.depth() }) {
		if shape := f.shape(); shape != "" {
			homes[shape] = cmp.Or(homes[shape], f.path)
		}
	}
	var page strings.Builder
	page.WriteString("# API reference\n\n" +
		"`make docs` generates this page from the CRDs. `kubectl explain` takes the headings and prints the same descriptions.\n\n" +
		"**Required** fields have no default. [Change a running cache](changes.md) shows what a change of a field does to a\nrunning cache.\n")
	elsewhere := "-" // the field whose fields are described in another place
	for _, f := range all {
		if strings.HasPrefix(f.path, elsewhere+".") {
			continue
		}
		title := titles[f.path]
		if title == "" {
			title = fmt.Sprintf("%s `%s`\n\nType: %s", strings.Repeat("#", 3+min(f.depth()/3, 1)), f.path, typeOf(f.JSONSchemaProps))
		}
		if f.required {
			title += ". **Required.**"
		}
		fmt.Fprintf(&page, "\n%s\n\n%s\n", title, oneLine(f.Description))
		for i, rule := range f.XValidations {
			if i == 0 {
				page.WriteString("\nThe API server requires:\n\n")
			}
			fmt.Fprintf(&page, "- %s\n", oneLine(rule.Message))
		}
		home := homes[f.shape()]
		if to := foreign[f.path[strings.LastIndex(f.path, ".")+1:]]; to != "" {
			elsewhere = f.path
			fmt.Fprintf(&page, "\nFields: see [Kubernetes' reference](https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.%s/#%s).\n", kubernetes, to)
		} else if home != "" && home != f.path {
			elsewhere = f.path
			fmt.Fprintf(&page, "\nFields: those of [`%s`](#%s).\n", home, strings.ReplaceAll(strings.ToLower(home), ".", ""))
		}
	}
	return page.String(), nil
}

// typeOf returns the type of a field with its limits.
func typeOf(field *apiextensionsv1.JSONSchemaProps) string {
	if len(field.Enum) > 0 {
		var values []string
		for _, value := range field.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		return "one of " + strings.Join(values, ", ")
	}
	name := field.Type
	switch {
	case field.XIntOrString:
		name = "quantity"
	case field.Format == "date-time":
		name = "time"
	case field.Type == "array" && field.Items != nil && field.Items.Schema != nil:
		name = "list of " + typeOf(field.Items.Schema)
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		name = "map of " + typeOf(field.AdditionalProperties.Schema)
	}
	switch {
	case field.Minimum != nil && field.Maximum != nil:
		name += fmt.Sprintf(", %.0f to %.0f", *field.Minimum, *field.Maximum)
	case field.Minimum != nil:
		name += fmt.Sprintf(", at least %.0f", *field.Minimum)
	case field.Maximum != nil:
		name += fmt.Sprintf(", at most %.0f", *field.Maximum)
	}
	return name
}

// oneLine returns a text for Markdown.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "<", `\<`)
}
