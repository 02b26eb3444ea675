package gitops

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/config"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/monitoring"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	root     = "../.."
	chartDir = root + "/charts/memcached-operator"
	system   = "memcached-operator-system"
)

// rendered returns the release of the chart with values.
func rendered(t *testing.T, name, namespace, values string) (*release.Release, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	must(t, err)
	var decoded map[string]any
	must(t, yaml.Unmarshal([]byte(values), &decoded))
	install := action.NewInstall(action.NewConfiguration())
	install.ReleaseName, install.Namespace, install.DryRunStrategy = name, namespace, action.DryRunClient
	install.KubeVersion = &common.KubeVersion{Version: "v1.29.0", Major: "1", Minor: "29"} // the oldest that the chart accepts
	r, err := install.Run(chart, decoded)
	if err != nil {
		return nil, err
	}
	return r.(*release.Release), nil
}

// objects returns the objects in YAML by kind and name, without their empty fields and the digests of images.
func objects(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all, err := cluster.Objects(strings.NewReader(regexp.MustCompile(`@sha256:[0-9a-f]{64}`).ReplaceAllString(text, "")))
	must(t, err)
	byName := map[string]map[string]any{}
	for _, o := range all {
		byName[o.GetKind()+" "+o.GetName()] = withoutEmpty(o.Object).(map[string]any)
	}
	return byName
}

// texts returns the objects as texts, of which a difference has few lines.
func texts(objects map[string]map[string]any) map[string]string {
	all := map[string]string{}
	for name, o := range objects {
		text, _ := yaml.Marshal(o) // it was read from YAML
		all[name] = string(text)
	}
	return all
}

func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if field = withoutEmpty(field); field == nil || field == "" {
				delete(value, name)
			}
		}
		if len(value) == 0 {
			return nil
		}
	case []any:
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
		if len(value) == 0 {
			return nil
		}
	}
	return value
}

// Helm creates the namespace, and keeps objects with an annotation. For one namespace, the Deployment of config/
// reads it from its pod.
func TestChartIsConfig(t *testing.T) {
	for dir, values := range map[string]string{"config/default": "", "config/namespaced": "watchNamespaces: [" + system + "]"} {
		t.Run(dir, func(t *testing.T) {
			r, err := rendered(t, "memcached-operator", system, values)
			must(t, err)
			got := objects(t, r.Manifest)
			for name, o := range got {
				keep, _, _ := unstructured.NestedString(o, "metadata", "annotations", "helm.sh/resource-policy")
				if isCRD := strings.HasPrefix(name, "CustomResourceDefinition "); isCRD != (keep == "keep") {
					t.Errorf("Helm's policy for %s is %q", name, keep)
				}
				unstructured.RemoveNestedField(o, "metadata", "annotations", "helm.sh/resource-policy")
			}
			built, err := config.Build(root, dir, nil)
			must(t, err)
			text, err := built.AsYaml()
			must(t, err)
			want := objects(t, strings.ReplaceAll(string(text), "- name: WATCH_NAMESPACE\n          valueFrom:\n            fieldRef:\n              fieldPath: metadata.namespace\n",
				"- name: WATCH_NAMESPACE\n          value: "+system+"\n"))
			delete(want, "Namespace "+system)
			if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
				t.Errorf("- %s, + the chart:\n%s", dir, diff)
			}
		})
	}
}

func TestValuesOfTheChart(t *testing.T) {
	for name, test := range map[string]struct {
		values       string
		want, absent []string
	}{
		"a mirror has the image of the release": {"image: {repository: registry.example.com/operator}",
			[]string{`image: "registry.example.com/operator:v`, "name: RELATED_IMAGE_AGENT\n          value: \"registry.example.com/operator:v"}, []string{"ghcr.io/memcached-operator/memcached-operator:"}},
		"an image by digest": {"image: {tag: v2, digest: 'sha256:0123'}", []string{`image: "ghcr.io/memcached-operator/memcached-operator:v2@sha256:0123"`}, nil},
		"scheduling": {"{replicas: 2, nodeSelector: {a: b}, tolerations: [{key: c}], affinity: null, priorityClassName: high, imagePullSecrets: [{name: d}], topologySpreadConstraints: [{maxSkew: 1}]}",
			[]string{"replicas: 2\n", `nodeSelector: {"a":"b"}`, `tolerations: [{"key":"c"}]`, "affinity: null\n", `priorityClassName: "high"`, `imagePullSecrets: [{"name":"d"}]`,
				`topologySpreadConstraints: [{"maxSkew":1}]`}, nil},
		"the pod": {"{args: [--zap-log-level=debug], podLabels: {a: b, control-plane: other}, podAnnotations: {c: d}, resources: {limits: {memory: 1Gi}}, volumes: [{name: e}], volumeMounts: [{name: e}]}",
			[]string{`"--leader-elect",`, `"--zap-log-level=debug"]`, `labels: {"a":"b","app.kubernetes.io/name":"memcached-operator","control-plane":"controller-manager"}`,
				`"c":"d"`, `memory":"1Gi"`, `volumes: [{"name":"e"}]`, `volumeMounts: [{"name":"e"}]`}, []string{`"other"`}},
		"settings are texts, lists, numbers and booleans": {"settings: {ALLOWED_IMAGE_PREFIXES: [a/, b/], ALLOW_AFFINITY: false, MONITORING: off, DEFAULT_IMAGE_UPDATES: 0, MONITORING_LABELS: 'a=b,c=d', RELATED_IMAGE_MEMCACHED: 'm:1'}",
			[]string{"name: ALLOWED_IMAGE_PREFIXES\n          value: \"a/,b/\"", "name: ALLOW_AFFINITY\n          value: \"false\"", "name: MONITORING\n          value: \"false\"", "name: DEFAULT_IMAGE_UPDATES\n          value: \"0\"",
				"name: MONITORING_LABELS\n          value: \"a=b,c=d\"", "name: RELATED_IMAGE_MEMCACHED\n          value: \"m:1\""}, []string{"ALLOW_TOLERATIONS"}},
		// Another manager of the Deployment, such as kubectl, keeps what Helm omits.
		"a setting that config/default has is emptied, not omitted": {"settings: {MONITORING_NAMESPACES: []}", []string{"name: MONITORING_NAMESPACES\n          value: \"\""}, nil},
		"some namespaces": {"watchNamespaces: [a, b, a]", []string{"kind: Role\nmetadata:\n  name: test-manager-role\n  namespace: \"a\"", "kind: RoleBinding\nmetadata:\n  name: test-manager-rolebinding\n  namespace: \"b\"",
			"name: WATCH_NAMESPACE\n          value: \"a,b\""}, []string{"kind: ClusterRole\nmetadata:\n  name: test-manager-role\n", "kind: ClusterRoleBinding\nmetadata:\n  name: test-manager-rolebinding\n"}},
		"a policy":                 {"networkPolicy: {enabled: true}", []string{"kind: NetworkPolicy\nmetadata:\n  name: test-controller-manager\n"}, nil},
		"no CRDs":                  {"crds: {enabled: false}", nil, []string{"CustomResourceDefinition"}},
		"a release with its names": {"{global: {}, enabled: true}", []string{"name: test-controller-manager\n  namespace: here\n"}, []string{system, "NetworkPolicy\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := rendered(t, "test", "here", test.values)
			must(t, err)
			objects(t, r.Manifest)
			for _, want := range test.want {
				if !strings.Contains(r.Manifest, want) {
					t.Errorf("the chart has no %q", want)
				}
			}
			for _, absent := range test.absent {
				if strings.Contains(r.Manifest, absent) {
					t.Errorf("the chart has %q", absent)
				}
			}
		})
	}
	for _, values := range []string{"replica: 2", "replicas: -1", "settings: {ALLOWED_IMAGES: a/}", "image: {sha: a}", "crds: {enabled: 'no'}"} {
		if _, err := rendered(t, "test", "here", values); err == nil || !strings.Contains(err.Error(), "schema") {
			t.Errorf("%s: the error is %v", values, err)
		}
	}
}

// Helm rejects a release with an object of another one. In other namespaces, releases share the CRDs only.
func TestHelmRejectsASecondReleaseInANamespace(t *testing.T) {
	count := map[string]int{}
	for _, name := range []string{"first", "second"} {
		r, err := rendered(t, name, "here", "crds: {enabled: false}")
		must(t, err)
		for object := range objects(t, r.Manifest) {
			count[object]++
		}
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return n == 1 })
	if diff := cmp.Diff(map[string]int{"Role memcached-operator-leader-election-role": 2}, count); diff != "" {
		t.Errorf("- what both releases should have, + what they have:\n%s", diff)
	}
}

func TestChartIsFreeOfWarnings(t *testing.T) {
	lint := action.NewLint()
	lint.Strict = true
	for _, m := range lint.Run([]string{chartDir}, nil).Messages {
		t.Error(m)
	}
}

// The cluster's test of the chart creates the cache of the notes.
func TestNotesNameANamespaceThatIsWatched(t *testing.T) {
	for values, want := range map[string]string{"": "", "watchNamespaces: [a, b]": " -n a"} {
		r, err := rendered(t, "test", "here", values)
		must(t, err)
		_, text, _ := strings.Cut(r.Info.Notes, "<<'END'\n")
		text, _, _ = strings.Cut(text, "END\n")
		if err := yaml.UnmarshalStrict([]byte(text), &v1beta1.Memcached{}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for _, command := range []string{"kubectl apply --server-side" + want + " -f", "\nkubectl" + want + " wait "} {
			if !strings.Contains(r.Info.Notes, command) {
				t.Errorf("with %q, the notes have no %q:\n%s", values, command, r.Info.Notes)
			}
		}
	}
}

func TestChartHasEverySettingOfTheOperator(t *testing.T) {
	source, err := os.ReadFile(root + "/main.go")
	must(t, err)
	// What the chart sets itself, and what limits memory.
	others := []string{"RELATED_IMAGE_AGENT", "POD_NAMESPACE", "WATCH_NAMESPACE", "MEMORY_LIMIT", "GOMEMLIMIT"}
	read := map[string]bool{"GOGC": true}
	getenv := func(name string) string { read[name] = true; return "" }
	for _, match := range regexp.MustCompile(`[gG]etenv\("([A-Z_]+)"\)`).FindAllStringSubmatch(string(source), -1) {
		if !slices.Contains(others, match[1]) {
			getenv(match[1])
		}
	}
	_, err = resources.ParseRestrictions(getenv)
	if _, err2 := monitoring.ParseOptions(getenv, system); err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	content, err := os.ReadFile(chartDir + "/values.yaml")
	must(t, err)
	var values struct{ Settings map[string]any }
	must(t, yaml.Unmarshal(content, &values))
	have := map[string]bool{}
	for name := range values.Settings {
		have[name] = true
	}
	if diff := cmp.Diff(read, have); diff != "" {
		t.Errorf("- the operator reads, + the chart has:\n%s", diff)
	}
}
