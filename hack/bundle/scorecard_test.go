package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	scorecard "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// checks are the tests of operator-sdk's image scorecard-test, by the names that
// the configuration calls them. They say what is wrong with the bundle in dir;
// what operator-sdk only suggests counts too.
var checks = map[string]func(b *manifests.Bundle, dir string) []string{
	"basic-check-spec": func(b *manifests.Bundle, _ string) []string {
		return eachExample(b, func(example unstructured.Unstructured, _ v1alpha1.CRDDescription) []string {
			if example.Object["spec"] == nil {
				return []string{"no spec"}
			}
			return nil
		})
	},
	"olm-bundle-validation": func(_ *manifests.Bundle, dir string) []string {
		// The manifests alone, and the metadata by itself, as operator-sdk reads them.
		b, err := manifests.GetBundleFromDir(filepath.Join(dir, "manifests"))
		if err != nil {
			return []string{err.Error()}
		}
		objects := []any{b, b.CSV}
		for _, crd := range b.V1CRDs {
			objects = append(objects, crd)
		}
		return append(findings(validation.DefaultBundleValidators, objects), badMetadata(dir)...)
	},
	"olm-crds-have-validation": func(b *manifests.Bundle, _ string) []string {
		return eachExample(b, func(example unstructured.Unstructured, owned v1alpha1.CRDDescription) []string {
			var out []string
			for _, part := range []string{"spec", "status"} {
				fields, _, _ := unstructured.NestedMap(example.Object, part)
				for field := range fields {
					if !hasSchema(b, owned, part, field) {
						out = append(out, fmt.Sprintf("%s.%s has no schema", part, field))
					}
				}
			}
			return out
		})
	},
	"olm-crds-have-resources": func(b *manifests.Bundle, _ string) []string {
		var out []string
		for _, owned := range b.CSV.Spec.CustomResourceDefinitions.Owned {
			if len(owned.Resources) == 0 {
				out = append(out, owned.Kind+" has no resources")
			}
		}
		return out
	},
	"olm-spec-descriptors": func(b *manifests.Bundle, _ string) []string {
		return eachExample(b, func(example unstructured.Unstructured, owned v1alpha1.CRDDescription) []string {
			var out []string
			fields, _, _ := unstructured.NestedMap(example.Object, "spec")
			for field := range fields {
				if !slices.ContainsFunc(owned.SpecDescriptors, func(d v1alpha1.SpecDescriptor) bool { return d.Path == field }) {
					out = append(out, "spec."+field+" has no descriptor")
				}
			}
			return out
		})
	},
	"olm-status-descriptors": func(b *manifests.Bundle, _ string) []string {
		return eachExample(b, func(_ unstructured.Unstructured, owned v1alpha1.CRDDescription) []string {
			// operator-sdk wants them only where an example has a status, and ours do not: the operator gives it.
			if len(owned.StatusDescriptors) == 0 {
				return []string{"the status has no descriptors"}
			}
			return nil
		})
	},
}

// eachExample runs a check on each example with what the bundle says of its
// kind. A kind that it says nothing of is a finding.
func eachExample(b *manifests.Bundle, check func(unstructured.Unstructured, v1alpha1.CRDDescription) []string) []string {
	var examples []unstructured.Unstructured
	if err := json.Unmarshal([]byte(b.CSV.Annotations["alm-examples"]), &examples); err != nil {
		return []string{"reading the examples: " + err.Error()}
	}
	var out []string
	for _, example := range examples {
		i := slices.IndexFunc(b.CSV.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool {
			return d.Kind == example.GetKind() && d.Version == example.GroupVersionKind().Version
		})
		if i < 0 {
			out = append(out, "no CRD is owned for the example of "+example.GroupVersionKind().String())
			continue
		}
		out = append(out, check(example, b.CSV.Spec.CustomResourceDefinitions.Owned[i])...)
	}
	return out
}

// hasSchema reports whether the CRD of a kind has a schema for a field of its spec
// or status.
func hasSchema(b *manifests.Bundle, owned v1alpha1.CRDDescription, part, field string) bool {
	for _, crd := range b.V1CRDs {
		for _, v := range crd.Spec.Versions {
			if crd.Name == owned.Name && v.Name == owned.Version && v.Schema != nil {
				_, found := v.Schema.OpenAPIV3Schema.Properties[part].Properties[field]
				return found
			}
		}
	}
	return false
}

// badMetadata is what is missing in the metadata of the bundle in dir.
func badMetadata(dir string) []string {
	content, err := os.ReadFile(filepath.Join(dir, "metadata/annotations.yaml"))
	if err != nil {
		return []string{err.Error()}
	}
	var file struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return []string{err.Error()}
	}
	var out []string
	for key, want := range map[string]string{"mediatype": "registry+v1", "manifests": "manifests/", "metadata": "metadata/", "package": packageName} {
		key = "operators.operatorframework.io.bundle." + key + ".v1"
		if got := file.Annotations[key]; got != want {
			out = append(out, fmt.Sprintf("%s is %q, want %q", key, got, want))
		}
	}
	if file.Annotations["operators.operatorframework.io.bundle.channels.v1"] == "" {
		out = append(out, "no channels are named")
	}
	return out
}

func TestScorecard(t *testing.T) {
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			for _, finding := range check(committedBundle(t), filepath.Join(root, "bundle")) {
				t.Error(finding)
			}
		})
	}
}

func TestScorecardFinds(t *testing.T) {
	const (
		csv = manifestsDir + "/memcached-operator.clusterserviceversion.yaml"
		crd = manifestsDir + "/cache.memcached-operator.io_memcacheds.yaml"
	)
	for _, test := range []struct{ check, file, old, new, want string }{
		{"basic-check-spec", csv, `"spec": {`, `"other": {`, "no spec"},
		{"basic-check-spec", csv, `"kind": "Memcached"`, `"kind": "Other"`, "no CRD is owned for the example of cache.memcached-operator.io/v1alpha1, Kind=Other"},
		{"olm-bundle-validation", crd, "name: memcacheds.cache.memcached-operator.io", "name: others.cache.memcached-operator.io", "others.cache.memcached-operator.io"},
		{"olm-bundle-validation", metadataDir + "/annotations.yaml", "registry+v1", "plain+v0", `mediatype.v1 is "plain+v0"`},
		{"olm-crds-have-validation", csv, `"size": 3`, `"sise": 3`, "spec.sise has no schema"},
		{"olm-crds-have-resources", csv, "\n      resources:\n", "\n      others:\n", "Memcached has no resources"},
		{"olm-spec-descriptors", csv, "\n        path: size\n", "\n        path: sise\n", "spec.size has no descriptor"},
		{"olm-status-descriptors", csv, "\n      statusDescriptors:\n", "\n      others:\n", "the status has no descriptors"},
	} {
		t.Run(test.check, func(t *testing.T) {
			files := committed(t)
			if !bytes.Contains(files[test.file], []byte(test.old)) {
				t.Fatalf("%s does not contain %q", test.file, test.old)
			}
			files[test.file] = bytes.ReplaceAll(files[test.file], []byte(test.old), []byte(test.new))
			dir := t.TempDir()
			if err := write(dir, files); err != nil {
				t.Fatal(err)
			}
			b, err := manifests.GetBundleFromDir(filepath.Join(dir, "bundle"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(checks[test.check](b, filepath.Join(dir, "bundle")), "\n"); !strings.Contains(got, test.want) {
				t.Errorf("the findings are %q, want %q among them", got, test.want)
			}
		})
	}
}

// The checks here reproduce the operator-sdk tests that the configuration runs.
func TestChecksMatchTheScorecardConfiguration(t *testing.T) {
	var configuration scorecard.Configuration
	if err := yaml.UnmarshalStrict(read(t, filepath.Join(root, scorecardFile)), &configuration); err != nil {
		t.Fatal(err)
	}
	var configured []string
	for _, test := range configuration.Stages[0].Tests {
		if strings.HasPrefix(test.Image, "quay.io/operator-framework/scorecard-test:") {
			configured = append(configured, test.Entrypoint[1])
		}
	}
	slices.Sort(configured)
	if want := slices.Sorted(maps.Keys(checks)); !slices.Equal(configured, want) {
		t.Errorf("the configuration runs %v, the tests here are %v", configured, want)
	}
}
