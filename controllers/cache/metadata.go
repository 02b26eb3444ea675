package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Users of a namespace choose what is in its objects, and may set the operator's label on any
// of them: 1,000 Services with 250 KiB of annotations each must not use the memory that all
// namespaces share.

const (
	// maxSize is the size, in bytes, above which an object is stored without its content. The
	// largest that the operator creates is smaller (resources.MaxRevision, resources.MaxDiscoveryList).
	maxSize = 128 << 10
	// maxValue is the size, in bytes, of the longest annotation of a custom resource. A hash
	// stands for a longer one.
	maxValue = 1 << 10
	// maxRecord is that of annotations.Transfer, which has the message of a transfer, and a part of the largest pod configuration.
	maxRecord = 8<<10 + resources.MaxRevision
	// maxFinalizers is the size, in bytes, of the names of an object's finalizers, above which tooManyFinalizers
	// stands for them. The API server rejects that name, so no write of the list removes one of them.
	maxFinalizers     = 4 << 10
	tooManyFinalizers = "too many finalizers"
	// Equal annotations from minShared bytes on share memory, and so do equal values whose text has up to maxShared bytes.
	minShared, maxShared = 256, resources.MaxDiscoveryList
)

// labelsRead are the labels that the operator reads.
var labelsRead = []string{
	v1beta1.LabelName, v1beta1.LabelInstance, v1beta1.LabelManagedBy, v1beta1.LabelShard, v1beta1.LabelSchedule, annotations.Listed, batchv1.JobNameLabel,
}

// annotationsRead returns the annotations that the operator reads of an object.
func annotationsRead(o client.Object) []string {
	switch o.(type) {
	case *v1beta1.Memcached:
		return []string{v1beta1.AnnotationRetry, v1beta1.AnnotationScaled, v1beta1.AnnotationPurge, resources.ReducedSpec}
	case *v1beta1.MemcachedBackup:
		return []string{annotations.Transfer}
	case *v1beta1.MemcachedRestore:
		return []string{annotations.Transfer, annotations.Refills}
	case *batchv1.Job:
		return []string{annotations.TransferOf}
	case *corev1.Pod:
		return []string{
			annotations.Arguments, annotations.Protection, annotations.Stop, annotations.Discovery, annotations.Handover, annotations.Receive, annotations.Revision, annotations.Spec, annotations.Update, annotations.Scaling,
			annotations.TransferOf, v1beta1.AnnotationRestart, v1beta1.AnnotationMove, corev1.PodDeletionCost,
		}
	case *appsv1.ReplicaSet:
		return []string{annotations.Update, annotations.Failed}
	default:
		return nil
	}
}

// trimMetadata keeps of an object's metadata what the operator reads, and what it applied.
// Managed fields are larger than the rest of a small object.
func trimMetadata(o client.Object) {
	entries := slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.FieldsV1 == nil || !keepsEntry(o, e)
	})
	for i, e := range entries {
		entries[i].FieldsV1 = intern(e.FieldsV1.GetRawString(), e.FieldsV1)
	}
	o.SetManagedFields(entries)
	applied := appliedFields(o)
	o.SetLabels(applied.only(o.GetLabels(), labelsRead...))
	o.SetAnnotations(applied.only(o.GetAnnotations(), annotationsRead(o)...))
	o.SetOwnerReferences(slices.DeleteFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Controller == nil || !*r.Controller }))
	if !isCustom(o) {
		o.SetFinalizers(nil)
		return
	}
	size := 0
	for _, name := range o.GetFinalizers() {
		size += len(name)
	}
	if size > maxFinalizers {
		o.SetFinalizers([]string{tooManyFinalizers})
	}
	for name, value := range o.GetAnnotations() {
		limit := maxValue
		if name == annotations.Transfer {
			limit = maxRecord
		}
		if len(value) > limit {
			sum := sha256.Sum256([]byte(value))
			o.GetAnnotations()[name] = hex.EncodeToString(sum[:])
		}
	}
}

// isCustom reports whether an object is of the operator's API. Its finalizers are written back
// as a list.
func isCustom(o client.Object) bool {
	switch o.(type) {
	case *v1beta1.Memcached, *v1beta1.MemcachedBackup, *v1beta1.MemcachedRestore, *v1beta1.MemcachedScheduledBackup:
		return true
	default:
		return false
	}
}

// reduce keeps of an object its identity, its labels and its controller.
func reduce(o client.Object) {
	m, ok := o.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return
	}
	kept := *m
	kept.Annotations, kept.ManagedFields = nil, nil
	reflect.ValueOf(o).Elem().SetZero()
	*m = kept
}

// fieldSet is the set of the fields that the operator applied, as JSON.
type fieldSet string

// appliedFields returns the fields that the operator applied to an object of those kinds that
// it compares with what it would apply.
func appliedFields(o client.Object) fieldSet {
	if _, isPod := o.(*corev1.Pod); isPod {
		return ""
	}
	for _, e := range o.GetManagedFields() {
		if keepsEntry(o, e) && e.FieldsV1 != nil {
			return fieldSet(e.FieldsV1.GetRawString())
		}
	}
	return ""
}

// only returns the labels or annotations that the operator applied, or that have one of these
// names. Equal long values share memory: the ReplicaSets and pods of a Memcached have the same.
func (s fieldSet) only(values map[string]string, names ...string) map[string]string {
	maps.DeleteFunc(values, func(name, _ string) bool {
		return !slices.Contains(names, name) && !strings.Contains(string(s), `"f:`+name+`"`)
	})
	for name, value := range values {
		if len(value) >= minShared {
			values[name] = intern(value, value)
		}
	}
	return values
}

// sharePodSpec has the parts of a pod's spec that are equal in most pods share memory.
func sharePodSpec(spec *corev1.PodSpec) {
	spec.Size() // a Quantity stores its text when that is first needed: before objects of other informers share it
	share(&spec.InitContainers)
	for i := range spec.Containers {
		c := &spec.Containers[i]
		share(&c.Command)
		share(&c.Env)
		share(&c.Ports)
		share(&c.Resources)
		share(&c.VolumeMounts)
		share(&c.LivenessProbe)
		share(&c.ReadinessProbe)
		share(&c.SecurityContext)
	}
	share(&spec.Affinity)
	share(&spec.SecurityContext)
	for i := range spec.Volumes {
		share(&spec.Volumes[i].VolumeSource)
	}
}

// share replaces a value by the stored one that is equal, if there is one.
func share[T any](value *T) {
	if raw, err := json.Marshal(value); err == nil && string(raw) != "null" {
		*value = intern(string(raw), *value)
	}
}

// interned has one copy of equal values: the objects of a kind and of one Memcached, and of most Memcacheds, have the same sets of fields and
// the same parts of pods' specs (ADR 8). The objects of one Memcached are mostly received one after the other, so it starts from empty
// when the texts of the values have more than maxInterned bytes.
var interned struct {
	lock sync.Mutex
	// values by their text
	values map[string]any
	// size of the texts in bytes
	size int
}

const maxInterned = 1 << 20

// intern returns the stored copy of a value, which must not be changed.
func intern[T any](text string, value T) T {
	if len(text) > maxShared {
		return value
	}
	interned.lock.Lock()
	defer interned.lock.Unlock()
	if same, ok := interned.values[text].(T); ok {
		return same
	}
	if interned.size += len(text); interned.values == nil || interned.size > maxInterned {
		interned.values, interned.size = map[string]any{}, len(text)
	}
	interned.values[text] = value
	return value
}
