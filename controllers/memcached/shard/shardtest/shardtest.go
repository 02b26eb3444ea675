// Package shardtest builds the pod revisions, ReplicaSets and pods of shards for tests.
package shardtest

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// RunningContainer is the ID of the container that runs in each of Pod's pods.
const RunningContainer = "running"

// Edit changes a spec.
type Edit func(*v1beta1.MemcachedSpec)

// Revision returns the pod revision of a spec with the CRD's defaults and some edits; nil
// edits nothing.
func Revision(t testing.TB, edits ...Edit) resources.PodRevision {
	t.Helper()
	spec := v1beta1.MemcachedSpec{
		Size: ptr.To[int32](3), Memory: ptr.To(resource.MustParse("64Mi")), Config: v1beta1.MemcachedConfig{MaxItemSize: ptr.To(resource.MustParse("1Mi")),
			MaxConnections: ptr.To[int32](1024), Threads: ptr.To[int32](4)},
	}
	for _, edit := range edits {
		if edit != nil {
			edit(&spec)
		}
	}
	image, err := resources.ResolveImage(spec.Pod.Image, spec.Version, "docker.io/library/memcached:1.6.45")
	if err != nil {
		t.Fatal(err)
	}
	return resources.NewPodRevision(&spec, image)
}

// All combines edits.
func All(edits ...Edit) Edit {
	return func(s *v1beta1.MemcachedSpec) {
		for _, edit := range edits {
			edit(s)
		}
	}
}

// Version sets the version.
func Version(version string) Edit { return func(s *v1beta1.MemcachedSpec) { s.Version = version } }

// Image sets the image.
func Image(reference string) Edit { return func(s *v1beta1.MemcachedSpec) { s.Pod.Image = reference } }

// Memory sets the memory.
func Memory(quantity string) Edit {
	return func(s *v1beta1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse(quantity)) }
}

// MaxConnections sets maxConnections.
func MaxConnections(n int32) Edit {
	return func(s *v1beta1.MemcachedSpec) { s.Config.MaxConnections = &n }
}

// ExtraArgs sets extraArgs.
func ExtraArgs(words ...string) Edit {
	return func(s *v1beta1.MemcachedSpec) { s.Config.ExtraArgs = words }
}

// Resources sets the requests and limits of a text such as
// "cpu 1 memory 1Gi | cpu 2 memory 1Gi".
func Resources(text string) Edit {
	requests, limits, _ := strings.Cut(text, "|")
	list := func(text string) corev1.ResourceList {
		words, all := strings.Fields(text), corev1.ResourceList{}
		for i := 0; i+1 < len(words); i += 2 {
			all[corev1.ResourceName(words[i])] = resource.MustParse(words[i+1])
		}
		return all
	}
	return func(s *v1beta1.MemcachedSpec) {
		s.Resources = &v1beta1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
	}
}

// ReplicaSet returns a shard's ReplicaSet, whose template has a revision.
func ReplicaSet(name string, template resources.PodRevision) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Template.Annotations = resources.PodAnnotations(template)
	return set
}

// Pod returns a ready pod of a revision.
func Pod(name string, revision resources.PodRevision) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: resources.PodAnnotations(revision)}}
	pod.Spec.Containers = []corev1.Container{{Name: resources.Container, Image: revision.Image.Reference}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: resources.Container, ContainerID: "containerd://" + RunningContainer}}
	return pod
}

// Starting makes a pod not ready.
func Starting(pod *corev1.Pod) { pod.Status.Conditions = nil }

// Crashing makes a pod's container wait after a crash.
func Crashing(pod *corev1.Pod) {
	Starting(pod)
	pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}
}

// Annotate sets an annotation of an object.
func Annotate(o metav1.Object, name, value string) {
	if o.GetAnnotations() == nil {
		o.SetAnnotations(map[string]string{})
	}
	o.GetAnnotations()[name] = value
}

// MountTLS adds the volume with the certificate to a pod.
func MountTLS(pod *corev1.Pod, secret string) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}}}}})
}

// MountKey lets a pod mount a Secret with the keys of handovers.
func MountKey(pod *corev1.Pod, secret string) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "handover",
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: []corev1.KeyToPath{{Key: "cache-0", Path: "key"}}}}})
}
