package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const testOLMImage = "registry.local/olm:v1.2.3@sha256:0123"

// renderPinnedOLM renders the chart of the version that is built.
func renderPinnedOLM(t *testing.T) string {
	t.Helper()
	module, err := moduleDir("olm", olmModule)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := renderOLM(filepath.Join(module, "deploy"), testOLMImage)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

func TestOLMChartGivesTheseObjects(t *testing.T) {
	var got []string
	for document := range strings.SplitSeq(renderPinnedOLM(t), "---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if o.Kind != "" {
			got = append(got, strings.TrimSuffix(o.Kind+" "+o.Metadata.Name+" "+o.Metadata.Namespace, " "))
		}
	}
	want := []string{
		"Namespace olm",
		"Namespace operators",
		"ClusterRole system:controller:operator-lifecycle-manager",
		"ServiceAccount olm-operator-serviceaccount olm",
		"ClusterRoleBinding olm-operator-binding-olm",
		"OLMConfig cluster",
		"Deployment olm-operator olm",
		"Deployment catalog-operator olm",
		"ClusterRole aggregate-olm-edit",
		"ClusterRole aggregate-olm-view",
		"OperatorGroup global-operators operators",
		"OperatorGroup olm-operators olm",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

func TestOLMDeploymentsRunOurImageAlone(t *testing.T) {
	rendered := renderPinnedOLM(t)
	type deployment struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Image           string
						ImagePullPolicy string `yaml:"imagePullPolicy"`
						Command, Args   []string
					}
				}
			}
		}
	}
	found := map[string]string{}
	for document := range strings.SplitSeq(rendered, "---\n") {
		var d deployment
		if err := yaml.Unmarshal([]byte(document), &d); err != nil || d.Kind != "Deployment" {
			continue
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			if c.Image != testOLMImage || c.ImagePullPolicy != "IfNotPresent" {
				t.Errorf("%s runs %s and pulls it %s", d.Metadata.Name, c.Image, c.ImagePullPolicy)
			}
			found[d.Metadata.Name] = strings.Join(append(c.Command, c.Args...), " ")
		}
	}
	if names := slices.Sorted(maps.Keys(found)); !slices.Equal(names, slices.Sorted(slices.Values(olmDeployments))) {
		t.Errorf("the chart has the deployments %v, and %v are waited for", names, olmDeployments)
	}
	for name, words := range map[string][]string{
		"olm-operator":     {"/bin/olm --namespace $(OPERATOR_NAMESPACE)"},
		"catalog-operator": {"/bin/catalog --namespace olm", "--opmImage=" + testOLMImage, "--util-image " + testOLMImage, "--set-workload-user-id=true"},
	} {
		for _, w := range words {
			if !strings.Contains(found[name], w) {
				t.Errorf("%s is started with %q, which lacks %q", name, found[name], w)
			}
		}
	}
	// requests to registries that nothing loads images of would fail
	if other := regexp.MustCompile(`\b(quay|ghcr|docker|gcr)\.io\S*`).FindString(rendered); other != "" {
		t.Errorf("the manifests name %s", other)
	}
}

func TestOLMChartWithAValueThatIsMissing(t *testing.T) {
	deploy := t.TempDir()
	write(t, deploy, "chart/values.yaml", "a: {b: 1}")
	write(t, deploy, "upstream/values.yaml", "a: {c: 2}")
	for _, name := range olmTemplates {
		write(t, deploy, filepath.Join("chart/templates", name), "{{ .Values.a.b }} {{ .Values.a.c }}")
	}
	if out, err := renderOLM(deploy, testOLMImage); err != nil || strings.Count(out, "1 2") != len(olmTemplates) {
		t.Errorf("rendered %q, %v", out, err)
	}
	write(t, deploy, filepath.Join("chart/templates", olmTemplates[0]), "{{ .Values.a.d }}")
	if out, err := renderOLM(deploy, testOLMImage); err == nil {
		t.Errorf("a value that is not there gave %q", out)
	}
}

func TestMergeValues(t *testing.T) {
	first := map[string]any{"image": map[string]any{"ref": "a", "pullPolicy": "Always"}, "debug": true, "list": []any{1, 2}}
	values := map[string]any{}
	merge(values, first)
	merge(values, map[string]any{"image": map[string]any{"ref": "b"}, "list": []any{3}, "new": map[string]any{"x": 1}})
	got, err := yaml.Marshal(values)
	if want := "debug: true\nimage:\n    pullPolicy: Always\n    ref: b\nlist:\n    - 3\nnew:\n    x: 1\n"; err != nil || string(got) != want {
		t.Errorf("got %s want %s", got, want)
	}
	if first["image"].(map[string]any)["ref"] != "a" {
		t.Error("merging changed the values that were merged first")
	}
}

// Every program that the image has is one that the build makes.
func TestOLMImageHoldsWhatTheModuleBuilds(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join("olm", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, tools, _ := strings.Cut(string(mod), "tool (\n")
	tools, _, _ = strings.Cut(tools, ")")
	built := []string{"bin/cp", "bin/grpc_health_probe"} // busybox, and the program of the module
	for tool := range strings.FieldsSeq(tools) {
		built = append(built, "bin/"+filepath.Base(tool))
	}
	slices.Sort(built)
	if holds := slices.Sorted(maps.Keys(olmRecipe("", "").files)); !slices.Equal(holds, built) {
		t.Errorf("the image holds %v, and the module builds %v", holds, built)
	}
}
