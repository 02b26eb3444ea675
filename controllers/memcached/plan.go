package memcached

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/applycache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

const (
	// agentRetryMin is the least time after which an agent that did not report its start is
	// queried again.
	agentRetryMin = time.Second
	// handoverRecheck is when to read the progress of a handover again.
	handoverRecheck = 5 * time.Second
	// conflictRecheck is when to look up a name again that another owner uses: the cache
	// doesn't contain foreign objects, so no watch announces that the name is free.
	conflictRecheck = 30 * time.Second
	// staleRequeue is when to reconcile again after an object has changed since it was read.
	staleRequeue = 100 * time.Millisecond
	// scaleInDelay is how long a shard stays after it was removed from the list: clients with auto
	// discovery read the list every minute, and the pods get it within seconds.
	scaleInDelay = 90 * time.Second
)

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
	Create []client.Object
	// Delete are objects to delete.
	Delete []client.Object
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

// batch returns the actions of one reconcile. Patches concern one shard.
func (a Actions) batch(failed applycache.Attempts) Actions {
	a.Apply, a.Postponed = batchOf(a.Apply, failed, a.Postponed, func(o apply) resources.Key { return o.Key })
	a.Create, a.Postponed = batchOf(a.Create, failed, a.Postponed, keyOf)
	a.Delete, a.Postponed = batchOf(a.Delete, failed, a.Postponed, keyOf)
	return a
}

func batchOf[T any](all []T, failed applycache.Attempts, postponed []resources.Key, keyOf func(T) resources.Key) ([]T, []resources.Key) {
	keys := make([]resources.Key, len(all))
	for i, o := range all {
		keys[i] = keyOf(o)
	}
	if len(keys) <= batchSize {
		return all, postponed
	}
	chosen := batch(keys, failed)
	var now []T
	for i, o := range all {
		if chosen[keys[i]] {
			now = append(now, o)
		} else {
			postponed = append(postponed, keys[i])
		}
	}
	return now, postponed
}

// keyOf returns the kind and name of an object that a plan creates or deletes.
func keyOf(o client.Object) resources.Key {
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

// plan is what a reconcile does, and what keeps it from doing more.
type plan struct {
	// shards are the shards that exist.
	shards []shard.State
	// rejected is why the spec can't be applied at all, and invalid why no change of it
	// reaches a shard; nil when it can.
	rejected, invalid *shard.Problem
	preflight         preflight.Result
	// decision is the next step of the rollout.
	decision    rollout.Decision
	bootstrap   bootstrapPlan
	refill      refillPlan
	finalBackup finalBackupPlan
	discovery   discoveryPlan
	binding     bindingPlan
	resources   resourcesPlan
	actions     Actions
}

// bootstrapPlan is how filling the first shards continues.
type bootstrapPlan struct {
	// status to report; nil without a bootstrap.
	status *v1alpha1.BootstrapStatus
	// delaysShards: no shard is created before the status reports the bootstrap.
	delaysShards bool
	// holdUntil is until when new pods delay their readiness; empty when they don't.
	holdUntil string
	actions   Actions
}

// discoveryPlan is what clients with auto discovery read.
type discoveryPlan struct {
	// status to report; nil without spec.discovery.
	status *v1alpha1.DiscoveryStatus
	// list as pods have it; empty without one.
	list string
	// delay is how long shards beyond the size stay.
	delay   time.Duration
	actions Actions
}

// bindingPlan is what workloads are bound to.
type bindingPlan struct {
	// status to report until the Secret was written; nil without spec.binding.
	status  *v1alpha1.BindingStatus
	actions Actions
}

// refillPlan is how lost shards are filled.
type refillPlan struct {
	refills []refill
	actions Actions
}

// refill is a lost shard with the restore that fills it, or none when it stays empty.
type refill struct {
	shard   string
	restore string
	event   event
}

// finalBackupPlan is how the deletion continues.
type finalBackupPlan struct {
	// message is what the deletion waits for; empty when it doesn't.
	message string
	actions Actions
}

// finalizerChange adds or removes the finalizer, and records an event when it is removed.
type finalizerChange struct {
	add, remove bool
	event       *event
	// backup is created first. Where that is impossible, because the namespace is being
	// deleted too, the finalizer is removed.
	backup *v1alpha1.MemcachedBackup
}

// resourcesPlan is what the Memcached's own objects need.
type resourcesPlan struct {
	actions Actions
	// rejected is why the objects can't be built; nil when they can.
	rejected *shard.Problem
	// conflicts are names that other owners use.
	conflicts []resources.Key
	// leftovers are names that a deleted Memcached of the same name still uses.
	leftovers []resources.Key
	// cached are the objects that are up to date.
	cached applycache.Objects
}

// joinKeys lists objects.
func joinKeys(keys []resources.Key) string {
	words := make([]string, len(keys))
	for i, key := range keys {
		words[i] = key.String()
	}
	return strings.Join(words, ", ")
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
