package resources

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/testcrd"
)

// What is left of a spec that is too large must be small.
func TestReducedSpecHasNoFieldThatTheCRDDoesNotBound(t *testing.T) {
	const root = "../../.."
	removed := []string{".pod.imagePullSecrets", ".pod.nodeSelector", ".pod.tolerations", ".pod.affinity", ".pod.topologySpreadConstraints", ".pod.metadata", ".pod.securityContext",
		".access.networkPolicy.allowedClients", ".access.networkPolicy.allowedScrapers", ".access.serviceMetadata", ".access.external.annotations"}
	found := map[string]bool{}
	for _, path := range unbounded(testcrd.Schema(t, root, "memcacheds").Properties["spec"], "") {
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
	for _, plural := range []string{"memcachedbackups", "memcachedrestores", "memcachedscheduledbackups"} {
		if paths := unbounded(testcrd.Schema(t, root, plural).Properties["spec"], ""); len(paths) > 0 {
			t.Errorf("the CRD of %s doesn't bound %v", plural, paths)
		}
	}
	m := &v1beta1.Memcached{}
	m.Spec.Pod.Metadata.Labels = map[string]string{"a": strings.Repeat("x", MaxSpec)}
	if ReduceSpec(m); m.Spec.Pod.Metadata.Labels != nil || !IsReduced(m) {
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
