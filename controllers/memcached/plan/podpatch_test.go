package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// The API server would reject the second patch of a pod.
func TestPatchesOfAPodAreOneWrite(t *testing.T) {
	pod, other := &corev1.Pod{}, &corev1.Pod{}
	pod.Name, other.Name = "cache-0-x", "cache-1-x"
	got := merge(
		Actions{Patch: []PodPatch{Annotate(pod, "update", "1")}},
		Actions{Patch: []PodPatch{Annotate(pod, "update", "2"), Annotate(pod, "list", "3"), Annotate(other, "list", "3")}},
		Actions{Patch: []PodPatch{resize(pod, resources.PodRevision{})}},
	).Patch
	want := []PodPatch{
		{Pod: pod, Body: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"update": "1", "list": "3"}}}},
		{Pod: other, Body: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"list": "3"}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
