package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// chartDir has the Helm chart: config/default with values, written by hand. TestChartIsConfig in test/gitops compares them.
const chartDir = "charts/memcached-operator"

var imageVersion = regexp.MustCompile(`(:[^/:@]+)?(@.*)?$`)

// chart returns the files of the chart in which something is generated: the CRDs, the metadata and the schema completely, and in
// others the images and the version of the release, the rules of the roles, and the table of the values.
func chart(root string, r release, csv *v1alpha1.ClusterServiceVersion, objects []*unstructured.Unstructured) (map[string][]byte, error) {
	const values, readme, operator = "values.yaml", "README.md", "templates/operator.yaml"
	texts := map[string]string{}
	for _, name := range []string{values, readme, operator} {
		content, err := os.ReadFile(filepath.Join(root, chartDir, name))
		if err != nil {
			return nil, fmt.Errorf("reading the chart: %w", err)
		}
		texts[name] = string(content)
	}
	texts[readme] = regexp.MustCompile(`(--version |/blob/v)[^ /]+`).ReplaceAllString(texts[readme], "${1}"+r.version.String())
	var problem error
	// replace replaces the group of a pattern.
	replace := func(file, pattern, with string) {
		text := texts[file]
		if match := regexp.MustCompile("(?s)" + pattern).FindStringSubmatchIndex(text); match != nil {
			texts[file] = text[:match[2]] + with + text[match[3]:]
			return
		}
		problem = fmt.Errorf("%s/%s needs a text that matches %q", chartDir, file, pattern)
	}
	version := imageVersion.FindString(r.image)
	memcached := slices.IndexFunc(csv.Spec.RelatedImages, func(i v1alpha1.RelatedImage) bool { return i.Name == "memcached" })
	replace(values, `\n  repository: ([^\n]*)`, strings.TrimSuffix(r.image, version))
	replace(operator, `default "([^"]*)" \$version`, version)
	replace(operator, `default "([^"]*)" \$.Values.settings.RELATED_IMAGE_MEMCACHED`, csv.Spec.RelatedImages[memcached].Image)
	crds := "# Generated from config/default by \"make bundle\".\n{{- if .Values.crds.enabled }}\n"
	for _, object := range objects {
		switch object.GetKind() {
		case "CustomResourceDefinition":
			annotations := object.GetAnnotations()
			annotations["helm.sh/resource-policy"] = "keep"
			object.SetAnnotations(annotations)
			crds += "---\n" + strings.ReplaceAll(string(encoded(object)), "{{", `{{ "{{" }}`)
		case "ClusterRole", "Role":
			name := strings.TrimPrefix(object.GetName(), packageName)
			replace(operator, `\n  name: [^\n]*`+name+`\n(?:  namespace: [^\n]*\n)?rules:\n(.*?)(?:---\n|{{-)`, string(encoded(object.Object["rules"])))
		}
	}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal([]byte(texts[values]), &document); err != nil {
		return nil, fmt.Errorf("reading the values of the chart: %w", err)
	}
	all, table := chartValues("", document.Content[0]), ""
	for _, v := range all {
		standard, _ := json.Marshal(v.standard) // it was read from YAML
		table += fmt.Sprintf("| `%s%s` | `%s` | %s |\n", v.group, v.name, standard, v.what)
	}
	replace(readme, `\| value \| default \| meaning \|\n\|---\|---\|---\|\n(.*)`, table)
	schema, _ := json.MarshalIndent(chartSchema(all), "", "  ") // of texts
	files := map[string][]byte{
		"Chart.yaml":          encoded(chartMetadata(r, csv)),
		"values.schema.json":  append(schema, '\n'),
		"templates/crds.yaml": []byte(crds + "{{- end }}\n"),
	}
	for name, text := range texts {
		files[name] = []byte(text)
	}
	return files, problem
}

// chartValue is a value of the chart. Its group ends with a dot.
type chartValue struct {
	group, name string
	standard    any
	what        string
}

// chartValues returns the values with the comments on them. A field without a comment is a group.
func chartValues(group string, fields *yamlv3.Node) []chartValue {
	var all []chartValue
	for pair := range slices.Chunk(fields.Content, 2) {
		name, value := pair[0], pair[1]
		if name.HeadComment == "" {
			all = append(all, chartValues(name.Value+".", value)...)
			continue
		}
		v := chartValue{group: group, name: name.Value, what: strings.TrimPrefix(name.HeadComment, "# ")}
		_ = value.Decode(&v.standard) // any value is one
		all = append(all, v)
	}
	return all
}

// chartMetadata returns Chart.yaml: what the ClusterServiceVersion contains, in Artifact Hub's words.
func chartMetadata(r release, csv *v1alpha1.ClusterServiceVersion) map[string]any {
	repository, version := csv.Annotations["repository"], r.version.String()
	var images, crds, links []map[string]string
	for _, i := range csv.Spec.RelatedImages {
		name := strings.TrimSuffix(path.Base(i.Image), imageVersion.FindString(i.Image))
		images = append(images, map[string]string{"name": name, "image": i.Image})
	}
	for _, c := range csv.Spec.CustomResourceDefinitions.Owned {
		crds = append(crds, map[string]string{"kind": c.Kind, "version": c.Version, "name": c.Name, "displayName": c.DisplayName, "description": c.Description})
	}
	for _, l := range csv.Spec.Links {
		links = append(links, map[string]string{"name": l.Name, "url": l.URL})
	}
	return map[string]any{
		"apiVersion": "v2", "type": "application", "name": packageName, "version": version, "appVersion": version,
		"kubeVersion": ">=" + csv.Spec.MinKubeVersion + "-0", "description": csv.Annotations["description"], "keywords": csv.Spec.Keywords,
		"home": repository, "sources": []string{repository}, "maintainers": csv.Spec.Maintainers,
		"icon": strings.Replace(repository, "github.com", "raw.githubusercontent.com", 1) + "/v" + version + "/config/manifests/icon.svg",
		"annotations": map[string]string{
			"artifacthub.io/category":             "database",
			"artifacthub.io/license":              "Apache-2.0",
			"artifacthub.io/operator":             "true",
			"artifacthub.io/operatorCapabilities": csv.Annotations["capabilities"],
			"artifacthub.io/prerelease":           strconv.FormatBool(len(r.version.Pre) > 0),
			"artifacthub.io/crdsExamples":         csv.Annotations["alm-examples"],
			"artifacthub.io/images":               string(encoded(images)),
			"artifacthub.io/crds":                 string(encoded(crds)),
			"artifacthub.io/links":                string(encoded(links)),
		},
	}
}

// chartSchema returns the JSON schema of the values. Their defaults have their types.
func chartSchema(values []chartValue) map[string]any {
	properties := map[string]any{"global": map[string]any{}, "enabled": map[string]any{}} // to a chart that another one contains, Helm passes them
	groups := map[string]map[string]any{"": properties}
	for _, v := range values {
		schema := map[string]any{"description": v.what, "type": "object"}
		switch v.standard.(type) {
		case string:
			schema["type"] = "string"
		case bool:
			schema["type"] = "boolean"
		case int:
			schema["type"], schema["minimum"] = "integer", 0
		case []any:
			schema["type"] = "array"
		}
		if v.group == "settings." {
			schema["type"] = []string{"string", "array", "boolean", "integer"}
		}
		if groups[v.group] == nil {
			groups[v.group] = map[string]any{}
			properties[strings.TrimSuffix(v.group, ".")] = closed(groups[v.group])
		}
		groups[v.group][v.name] = schema
	}
	schema := closed(properties)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	return schema
}

// closed returns the schema of an object with these fields only.
func closed(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}
