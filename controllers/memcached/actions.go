package memcached

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// conflictRecheck is when to look up a name again that another owner uses: the cache doesn't
// contain foreign objects, so no watch announces that the name is free.
const conflictRecheck = 30 * time.Second

// Actions are the writes that a planner wants, in this order, and when to reconcile again.
type Actions struct {
	// Finalizer is added or removed first.
	Finalizer finalizerChange
	// Secret with the key of handovers is created, if it doesn't exist, before the pods that need it.
	Secret *corev1.Secret
	// SecretIsFirst is whether one that exists can be that of a deleted Memcached with the same name.
	SecretIsFirst bool
	// Binding is a Secret to create, or to update if it has a version, without a password to get a new one.
	Binding *corev1.Secret
	// Apply are objects to apply.
	Apply []apply
	// Patch are changes of pods.
	Patch []podPatch
	// Create are objects that other controllers work on.
	Create []resources.APIObject
	// Delete are objects to delete.
	Delete []resources.APIObject
	// Postponed are objects that a later reconcile applies, creates or deletes: see batch.
	Postponed []resources.Key
	// RequeueAfter is when to reconcile again where no watch triggers it; 0 is never.
	RequeueAfter time.Duration
}

// apply is an object to apply. The API server rejects the write when another object has
// taken the name since it was observed and, with a version, when the object has changed.
type apply struct {
	resources.Object
	uid     types.UID
	version string
}

// merge returns the actions of all planners, in the order of the planners.
func merge(all ...Actions) Actions {
	var m Actions
	for _, a := range all {
		if a.Finalizer != (finalizerChange{}) {
			m.Finalizer = a.Finalizer
		}
		m.Secret = cmp.Or(m.Secret, a.Secret)
		m.SecretIsFirst = m.SecretIsFirst || a.SecretIsFirst
		m.Binding = cmp.Or(m.Binding, a.Binding)
		m.Apply = append(m.Apply, a.Apply...)
		m.Patch = append(m.Patch, a.Patch...)
		m.Create = append(m.Create, a.Create...)
		m.Delete = append(m.Delete, a.Delete...)
		m.Postponed = append(m.Postponed, a.Postponed...)
		m.RequeueAfter = soonest(m.RequeueAfter, a.RequeueAfter)
	}
	return m
}

// keyOf returns the kind and name of an object that a plan creates or deletes.
func keyOf(o resources.APIObject) resources.Key {
	kind := resources.KindReplicaSet
	switch o.(type) {
	case *corev1.Service:
		kind = resources.KindService
	case *networkingv1.NetworkPolicy:
		kind = resources.KindNetworkPolicy
	case *corev1.Pod:
		kind = resources.KindPod
	case *corev1.Secret:
		kind = resources.KindSecret
	case *v1alpha1.MemcachedRestore:
		kind = kindRestore
	case *v1alpha1.MemcachedBackup:
		kind = kindBackup
	}
	return resources.Key{Kind: kind, Name: o.GetName()}
}

// Kinds of the objects that other controllers work on.
const (
	kindRestore resources.Kind = "MemcachedRestore"
	kindBackup  resources.Kind = "MemcachedBackup"
)

// soonest returns the smaller of two times after which to reconcile again; 0 is never.
func soonest(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// result is the result of the writes.
type result struct {
	// applied are the objects that were written and exist now.
	applied map[resources.Key]bool
	// rejections are answers of the API server that the status reports as Degraded.
	rejections []error
	// failures are errors that a retry may fix.
	failures []error
	// failedCreates are the names of objects that could not be created yet.
	failedCreates map[string]bool
	// succeeded: something was written. failed are the objects whose writes failed.
	succeeded bool
	failed    []resources.Key
	// conflict: an object has changed since it was observed and was not written.
	conflict bool
	// gone: the Memcached is being deleted, with its namespace or because its finalizer was
	// removed. Nothing is left to do or to report.
	gone bool
	// events of the writes.
	events []event
}

// retry returns the error that causes a retry, if any.
func (r result) retry() error { return errors.Join(r.failures...) }

// event is an event to record, with the pod that it is related to, if any.
type event struct{ kind, reason, message, pod string }

func normal(reason, format string, args ...any) event {
	return event{kind: corev1.EventTypeNormal, reason: reason, message: fmt.Sprintf(format, args...)}
}

func warning(reason, format string, args ...any) event {
	return event{kind: corev1.EventTypeWarning, reason: reason, message: fmt.Sprintf(format, args...)}
}
