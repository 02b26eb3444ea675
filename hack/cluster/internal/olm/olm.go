// Package olm runs the Operator Lifecycle Manager on the cluster: v0 in pods, v1 as processes beside it.
package olm

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cluster"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

const olmNamespace = "olm"

// Up installs OLM in the running cluster. It can be repeated.
func Up(d cache.Dirs) error {
	if _, err := cluster.Running(d); err != nil {
		return err
	}
	o, err := builds.NewOLM(d)
	if err != nil {
		return err
	}
	image, err := o.Image()
	if err != nil {
		return err
	}
	if err := host.Step("installing OLM "+o.Version, func() error { return apply(d, o, image) }); err != nil {
		return err
	}
	err = host.Step("waiting for OLM to be available", func() error {
		_, err := cluster.Kubectl(d, "", "--namespace="+olmNamespace, "rollout", "status", "deployment/olm-operator", "deployment/catalog-operator", "--timeout=2m")
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\nsee kubectl -n %s describe pods", err, olmNamespace)
	}
	return nil
}

func apply(d cache.Dirs, o builds.OLM, image string) error {
	if err := cluster.PushLayout(o.Layout); err != nil {
		return err
	}
	objects, err := renderOLM(o.Chart, image)
	if err != nil {
		return err
	}
	if err := cluster.Apply(d, filepath.Join(o.Chart, "crds"), ""); err != nil {
		return err
	}
	return cluster.Apply(d, "-", objects)
}

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

// renderOLM renders OLM's chart as Helm does, with one image for all pods. The rendered manifests beside the chart are of an older
// release and do not start this one.
func renderOLM(chart, image string) (string, error) {
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return "", err
	}
	var values map[string]any
	if err := yaml.Unmarshal(content, &values); err != nil {
		return "", err
	}
	values["namespace"], values["catalog_namespace"] = olmNamespace, olmNamespace
	ours := map[string]any{"ref": image, "pullPolicy": "IfNotPresent"}
	for name, changed := range map[string]map[string]any{
		"namespace_psa": {"enforceLevel": "restricted"},
		"olm":           {"image": ours},
		// commandArgs would name the image of an obsolete kind of catalog.
		"catalog": {"image": ours, "opmImageArgs": "--opmImage=" + image, "commandArgs": ""},
	} {
		old, _ := values[name].(map[string]any)
		maps.Copy(old, changed)
	}
	t := template.New("").Funcs(template.FuncMap{
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"indent": func(n int, s string) string {
			margin := strings.Repeat(" ", n)
			return margin + strings.ReplaceAll(s, "\n", "\n"+margin)
		},
	})
	var out strings.Builder
	for _, name := range olmTemplates {
		if _, err := t.ParseFiles(filepath.Join(chart, "templates", name)); err != nil {
			return "", err
		}
		out.WriteString("---\n")
		if err := t.ExecuteTemplate(&out, name, map[string]any{"Values": values}); err != nil {
			return "", err
		}
		out.WriteString("\n")
	}
	return out.String(), nil
}
