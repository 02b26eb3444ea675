package plan

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// ConflictRecheck is when to look up a name again that another owner uses: the cache doesn't
// contain foreign objects, so no watch announces that the name is free.
const ConflictRecheck = 30 * time.Second

// Actions are the writes that a planner wants, in this order, and when to reconcile again.
type Actions struct {
	// Finalizer is added or removed first.
	Finalizer FinalizerChange
	// Secrets with keys are created, if they don't exist, before the pods that need them.
	Secrets []*corev1.Secret
	// Binding is a Secret to create or, if it has a version, to update. The writer generates a missing password.
	Binding *corev1.Secret
	// BindingRepeats is whether Binding was written before, and may only have been deleted since.
	BindingRepeats bool
	// Apply are objects to apply.
	Apply []Apply
	// Patch are changes of pods.
	Patch []PodPatch
	// Create are objects that other controllers work on.
	Create []resources.APIObject
	// Delete are objects to delete.
	Delete []resources.APIObject
	// ScaleIn are the objects of shards beyond the size, to delete in this order: one that can't be deleted delays those
	// after it until a later reconcile.
	ScaleIn []resources.APIObject
	// RequeueAfter is when to reconcile again where no watch triggers it; 0 is never.
	RequeueAfter time.Duration
}

// Apply is an object to apply. The API server rejects the write when another object has
// taken the name since it was observed and, with a version, when the object has changed.
type Apply struct {
	resources.Object
	UID     types.UID
	Version string
}

// merge returns the actions of all planners, in the order of the planners.
func merge(all ...Actions) Actions {
	var m Actions
	for _, a := range all {
		if a.Finalizer != (FinalizerChange{}) {
			m.Finalizer = a.Finalizer
		}
		m.Secrets = append(m.Secrets, a.Secrets...)
		m.Binding, m.BindingRepeats = cmp.Or(m.Binding, a.Binding), m.BindingRepeats || a.BindingRepeats
		m.Apply = append(m.Apply, a.Apply...)
		for _, p := range a.Patch {
			m.Patch = join(m.Patch, p)
		}
		m.Create = append(m.Create, a.Create...)
		m.Delete = append(m.Delete, a.Delete...)
		m.ScaleIn = append(m.ScaleIn, a.ScaleIn...)
		m.RequeueAfter = Soonest(m.RequeueAfter, a.RequeueAfter)
	}
	return m
}

// join adds a patch to those of other planners. A pod has one, since the API server rejects a second patch of the same version:
// what both set has the value of the first, and a patch of another subresource waits until the pod is observed again.
func join(patches []PodPatch, p PodPatch) []PodPatch {
	i := slices.IndexFunc(patches, func(other PodPatch) bool { return other.Pod.Name == p.Pod.Name })
	switch {
	case i < 0:
		return append(patches, p)
	case patches[i].Subresource == p.Subresource:
		patches[i].Body = union(patches[i].Body, p.Body)
	}
	return patches
}

// union returns the fields of two patches, which it doesn't change.
func union(first, second map[string]any) map[string]any {
	all := maps.Clone(second)
	for name, value := range first {
		if fields, ok := value.(map[string]any); ok && second[name] != nil {
			value = union(fields, second[name].(map[string]any))
		}
		all[name] = value
	}
	return all
}

// Soonest returns the smallest of the times after which to reconcile again; 0 is never.
func Soonest(after ...time.Duration) (soonest time.Duration) {
	for _, d := range after {
		if soonest <= 0 || d > 0 && d < soonest {
			soonest = d
		}
	}
	return soonest
}

// Result is the result of the writes.
type Result struct {
	// Applied are the objects that were written and exist now.
	Applied map[resources.Key]bool
	// Rejections are answers of the API server that the status reports as Degraded.
	Rejections []error
	// BindingAnswered is whether the API server answered the write of a binding's Secret, and BindingRejection why it rejected one that
	// existed before; nil if it didn't.
	BindingAnswered  bool
	BindingRejection error
	// Failures are errors that a retry may fix.
	Failures []error
	// Conflict is whether an object has changed since it was observed and was not written.
	Conflict bool
	// Gone is whether the Memcached is being deleted, with its namespace or because its finalizer was
	// removed. Nothing is left to do or to report.
	Gone bool
	// Events of the writes.
	Events []event.Event
}

// Retry returns the error that causes a retry, if any.
func (r Result) Retry() error { return errors.Join(r.Failures...) }

// FinalizerChange adds or removes the finalizer, and records an event when it is removed.
type FinalizerChange struct {
	Add, Remove bool
	Event       *event.Event
	// Backup is created first. Where that is impossible, because the namespace is being
	// deleted too, the finalizer is removed.
	Backup *v1beta1.MemcachedBackup
}
