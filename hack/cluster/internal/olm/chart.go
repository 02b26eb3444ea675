package olm

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// olmTemplates are the files of OLM's chart that are installed. The others are for a package server, the catalog of
// operatorhub.io, OpenShift, Prometheus, and network policies, which this cluster does not enforce.
var olmTemplates = []string{
	"0000_50_olm_00-namespace.yaml",
	"0000_50_olm_02-olm-operator.serviceaccount.yaml",
	"0000_50_olm_03-olmconfig.yaml",
	"0000_50_olm_07-olm-operator.deployment.yaml",
	"0000_50_olm_08-catalog-operator.deployment.yaml",
	"0000_50_olm_09-aggregated.clusterrole.yaml",
	"0000_50_olm_13-operatorgroup-default.yaml",
}

// renderOLM renders OLM's chart as Helm does, with one image for all pods. deploy is the folder of that name in OLM's
// module. The rendered manifests there are of an older release and do not start this one.
func renderOLM(deploy, image string) (string, error) {
	values := map[string]any{}
	for _, file := range []string{"chart/values.yaml", "upstream/values.yaml"} {
		content, err := os.ReadFile(filepath.Join(deploy, file))
		if err != nil {
			return "", err
		}
		var more map[string]any
		if err := yaml.Unmarshal(content, &more); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		merge(values, more)
	}
	ours := map[string]any{"ref": image, "pullPolicy": "IfNotPresent"}
	merge(values, map[string]any{
		"namespace": olmNamespace,
		"olm":       map[string]any{"image": ours},
		// commandArgs would name the image of an obsolete kind of catalog.
		"catalog": map[string]any{"image": ours, "opmImageArgs": "--opmImage=" + image, "commandArgs": ""},
	})
	var out strings.Builder
	for _, name := range olmTemplates {
		out.WriteString("---\n")
		if err := renderTemplate(&out, filepath.Join(deploy, "chart", "templates", name), values); err != nil {
			return "", err
		}
		out.WriteString("\n")
	}
	// A missing value.
	if rendered := out.String(); !strings.Contains(rendered, "<no value>") {
		return rendered, nil
	}
	return "", fmt.Errorf("OLM's chart in %s asks for a value that its values.yaml does not have", deploy)
}

func renderTemplate(out *strings.Builder, file string, values map[string]any) error {
	functions := template.FuncMap{
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"indent": func(n int, s string) string {
			margin := strings.Repeat(" ", n)
			return margin + strings.ReplaceAll(s, "\n", "\n"+margin)
		},
	}
	t, err := template.New(filepath.Base(file)).Funcs(functions).ParseFiles(file)
	if err != nil {
		return err
	}
	return t.Execute(out, map[string]any{"Values": values})
}

// merge copies the values of from into to, as a second values file does.
func merge(to, from map[string]any) {
	for k, v := range from {
		below, isMap := v.(map[string]any)
		if !isMap {
			to[k] = v
			continue
		}
		old, _ := to[k].(map[string]any)
		merged := maps.Clone(old)
		if merged == nil {
			merged = map[string]any{}
		}
		merge(merged, below)
		to[k] = merged
	}
}
