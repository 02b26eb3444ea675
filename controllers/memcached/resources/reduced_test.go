package resources

import (
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// What is left of a spec that is too large must be small.
func TestReducedSpecHasNoFieldThatTheCRDDoesNotBound(t *testing.T) {
	raw, err := os.ReadFile("../../../config/crd/bases/cache.memcached-operator.io_memcacheds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		t.Fatal(err)
	}
	removed := []string{".imagePullSecrets", ".scheduling", ".podMetadata", ".podSecurity", ".networkPolicy.allowedClients", ".monitoring.from", ".service.labels", ".service.annotations"}
	found := map[string]bool{}
	for _, path := range unbounded(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], "") {
		i := slices.IndexFunc(removed, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
		if i < 0 {
			t.Errorf("ReduceSpec keeps spec%s, which the CRD doesn't bound", path)
			continue
		}
		found[removed[i]] = true
	}
	if len(found) != len(removed) {
		t.Errorf("of the fields that ReduceSpec removes, the CRD doesn't bound only %v", found)
	}
	m := &v1alpha1.Memcached{}
	m.Spec.PodMetadata.Labels = map[string]string{"a": strings.Repeat("x", MaxSpec)}
	if ReduceSpec(m); m.Spec.PodMetadata.Labels != nil || !IsReduced(m) {
		t.Errorf("reduced to %+v", m)
	}
}

// unbounded returns the paths of strings, lists and maps of any size.
func unbounded(s apiextensionsv1.JSONSchemaProps, path string) (paths []string) {
	switch s.Type {
	case "string":
		fixed := s.Pattern != "" && !strings.ContainsAny(s.Pattern, "*+{")
		if s.MaxLength == nil && len(s.Enum) == 0 && s.Format == "" && !fixed {
			return []string{path}
		}
	case "array":
		if s.MaxItems == nil {
			paths = append(paths, path)
		}
		paths = append(paths, unbounded(*s.Items.Schema, path+"[]")...)
	case "object":
		for name, property := range s.Properties {
			paths = append(paths, unbounded(property, path+"."+name)...)
		}
		if s.AdditionalProperties != nil {
			if s.MaxProperties == nil {
				paths = append(paths, path)
			}
			paths = append(paths, unbounded(*s.AdditionalProperties.Schema, path+"{}")...)
		}
	}
	return paths
}
