package plan

import (
	"cmp"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Annotate sets an annotation of a pod, or removes it when the value is nil.
func Annotate(pod *corev1.Pod, name string, value any) PodPatch {
	return PodPatch{Pod: pod, Body: map[string]any{"metadata": map[string]any{"annotations": map[string]any{name: value}}}}
}

// resize sets the resources of a running pod.
func resize(pod *corev1.Pod, to resources.PodRevision) PodPatch {
	return PodPatch{Pod: pod, Subresource: shard.ResizeSubresource, Body: containerPatch("resources", to.Resources)}
}

// updateInPlace changes a pod in place to a revision and records the update, in one write. restart is the restart
// annotation; empty to keep it.
func updateInPlace(s *shard.State, to resources.PodRevision, restart, record string) PodPatch {
	podAnnotations, labels := map[string]any{}, map[string]any{}
	for name := range s.PodRevision.Spec.Pod.Metadata.Annotations {
		podAnnotations[name] = nil
	}
	for name, value := range resources.PodAnnotations(to) {
		podAnnotations[name] = value
	}
	for name := range s.PodRevision.Spec.Pod.Metadata.Labels {
		labels[name] = nil
	}
	for name, value := range to.Spec.Pod.Metadata.Labels {
		labels[name] = value
	}
	protections := resources.Protections(&to.Spec)
	for name := range resources.Protections(&s.PodRevision.Spec) { // a rollback removes what the template doesn't have, on purpose
		protections[name] = cmp.Or(protections[name], agentwire.ProtectionOff)
	}
	podAnnotations[annotations.Protection] = protections.String()
	podAnnotations[annotations.Update] = record
	if restart != "" {
		podAnnotations[v1beta1.AnnotationRestart] = restart
	}
	body := map[string]any{}
	if to.Image.Reference != s.PodRevision.Image.Reference {
		body = containerPatch("image", s.ImageFor(to))
	}
	body["metadata"] = map[string]any{"annotations": podAnnotations, "labels": labels}
	return PodPatch{Pod: s.Active, Body: body}
}

// containerPatch sets one field of the memcached container.
func containerPatch(field string, value any) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []map[string]any{{"name": resources.Container, field: value}}}}
}

// PodPatch is a strategic merge patch of one pod. The API server rejects it when the pod has
// changed since it was observed.
type PodPatch struct {
	Pod *corev1.Pod
	// Subresource to patch; empty for the pod itself.
	Subresource string
	Body        map[string]any
}

// Bytes returns the patch as JSON.
func (p PodPatch) Bytes() []byte {
	observed := map[string]any{"metadata": map[string]any{"uid": p.Pod.UID, "resourceVersion": p.Pod.ResourceVersion}}
	raw, err := json.Marshal(union(observed, p.Body))
	if err != nil { // a patch consists of plain values
		panic(err)
	}
	return raw
}
