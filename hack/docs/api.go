package main

import (
	"errors"
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
	"tolerations":               "toleration-v1-core",
	"topologySpreadConstraints": "topologyspreadconstraint-v1-core",
	"imagePullSecrets":          "localobjectreference-v1-core",
	"conditions":                "condition-v1-meta",
}

// reference writes the page about the CRDs.
type reference struct {
	strings.Builder
	// kubernetes is the address of the reference of the Kubernetes version in go.mod.
	kubernetes string
}

var kubernetesModule = regexp.MustCompile(`(?m)^\tk8s\.io/api v0\.([0-9]+)\.`)

// apiReference returns the page about the CRDs of the repository at root.
func apiReference(root string) (string, error) {
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	minor := kubernetesModule.FindSubmatch(module)
	if minor == nil {
		return "", errors.New("go.mod requires no k8s.io/api v0.MINOR")
	}
	page := reference{kubernetes: fmt.Sprintf("https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.%s/#", minor[1])}
	page.WriteString("# API reference\n\n" +
		"`make docs` generates this page from the CRDs. `kubectl explain` prints the same descriptions.\n\n" +
		"`[]` marks a list, and a path continues inside the type before it. **Required** fields have no default.\n" +
		"[Change a running cache](changes.md) shows what a change of a field does to a running cache.\n")
	for _, plural := range kinds {
		crd, err := readCRD(root, plural)
		if err != nil {
			return "", err
		}
		page.writeKind(crd)
	}
	return page.String(), nil
}

// writeKind writes the section about a CRD.
func (page *reference) writeKind(crd *apiextensionsv1.CustomResourceDefinition) {
	version := crd.Spec.Versions[0]
	root := version.Schema.OpenAPIV3Schema
	kind := crd.Spec.Names.Kind
	fmt.Fprintf(page, "\n## %s\n\n%s\n\n", kind, oneLine(root.Description))
	fmt.Fprintf(page, "`apiVersion: %s/%s`, short name `%s`.\n", crd.Spec.Group, version.Name, strings.Join(crd.Spec.Names.ShortNames, "`, `"))
	if rules := messages(root); len(rules) > 0 {
		fmt.Fprintf(page, "\nThe API server requires:\n\n- %s\n", strings.Join(rules, "\n- "))
	}
	for _, part := range []string{"spec", "status"} {
		field := root.Properties[part]
		fmt.Fprintf(page, "\n### %s of a %s\n\n%s\n", strings.ToUpper(part[:1])+part[1:], kind, oneLine(field.Description))
		if rules := messages(&field); len(rules) > 0 {
			fmt.Fprintf(page, "\nThe API server requires:\n\n- %s\n", strings.Join(rules, "\n- "))
		}
		page.WriteString("\n| field | type | description |\n|---|---|---|\n")
		page.writeFields(part, &field)
	}
}

// writeFields writes a row for each field below a path.
func (page *reference) writeFields(path string, parent *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(parent.Properties)) {
		field := parent.Properties[name]
		full := path + "." + name
		description := oneLine(field.Description)
		if slices.Contains(parent.Required, name) {
			description = "**Required.** " + description
		}
		for _, rule := range messages(&field) {
			description += " Rule: " + rule + "."
		}
		anchor, isForeign := foreign[name]
		if isForeign {
			description += fmt.Sprintf(" See [Kubernetes' reference](%s).", page.kubernetes+anchor)
		}
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", full, typeOf(&field), markdown.Replace(description))
		switch {
		case isForeign:
		case field.Items != nil && field.Items.Schema != nil:
			page.writeFields(full+"[]", field.Items.Schema)
		default:
			page.writeFields(full, &field)
		}
	}
}

// typeOf returns the type of a field with its limits.
func typeOf(field *apiextensionsv1.JSONSchemaProps) string {
	if len(field.Enum) > 0 {
		var values []string
		for _, value := range field.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		return strings.Join(values, ", ")
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

// messages returns the messages of a schema's CEL rules.
func messages(schema *apiextensionsv1.JSONSchemaProps) []string {
	var all []string
	for _, rule := range schema.XValidations {
		all = append(all, oneLine(rule.Message))
	}
	return all
}

// markdown escapes what a description must not mean in a table of Markdown.
var markdown = strings.NewReplacer("|", `\|`, "<", `\<`)

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// readCRD returns the CRD of a kind.
func readCRD(root, plural string) (*apiextensionsv1.CustomResourceDefinition, error) {
	raw, err := os.ReadFile(filepath.Join(root, "config", "crd", "bases", "cache.memcached-operator.io_"+plural+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading a CRD: %w", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		return nil, fmt.Errorf("reading the CRD %s: %w", plural, err)
	}
	return &crd, nil
}
