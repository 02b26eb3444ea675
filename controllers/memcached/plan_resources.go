package memcached

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/applycache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// formerSecret is how long after its creation a Memcached without shards waits for the garbage
// collection of a Secret with the name of its own. Its pods would have the former key, or none, until a
// later write of a template creates the Secret.
const formerSecret = 10 * time.Second

// planResources returns the objects that are missing or not up to date.
func planResources(obs *observation, build *resources.Builder, shards []resources.Shard, delaysShards bool) resourcesPlan {
	p := resourcesPlan{cached: applycache.Objects{}}
	secret := keyOf(build.HandoverSecret())
	created, isCreated := obs.cached[secret]
	if isCreated {
		p.cached[secret] = created
	}
	for _, want := range build.Desired(shards) {
		have, exists := obs.objects[want.Key]
		switch {
		case delaysShards && want.Key.Kind == resources.KindReplicaSet:
			continue
		case exists && have.owner == foreign:
			p.conflicts = append(p.conflicts, want.Key)
			p.actions.RequeueAfter = conflictRecheck
			continue
		case exists && (have.owner == predecessors || have.GetDeletionTimestamp() != nil):
			p.leftovers = append(p.leftovers, want.Key)
			continue
		case !exists && obs.unread[want.Key]:
			p.actions.Postponed = append(p.actions.Postponed, want.Key)
			continue
		}
		var current applycache.Object
		if exists {
			current = applycache.NewObject(obs.memcached, want, have)
			if obs.cached[want.Key] == current {
				p.cached[want.Key] = current
				continue
			}
		}
		object, err := build.Build(want)
		switch {
		case err != nil:
			return resourcesPlan{cached: obs.cached, rejected: &shard.Problem{Reason: v1alpha1.ReasonApplyRejected, Message: err.Error()}}
		case !exists:
			p.actions.Apply = append(p.actions.Apply, apply{Object: object})
		case isApplied(object.Apply, have.Object):
			p.cached[want.Key] = current
		default:
			update := apply{Object: object, uid: have.GetUID()}
			if want.Key.Kind == resources.KindReplicaSet {
				update.version = have.GetResourceVersion()
			}
			p.actions.Apply = append(p.actions.Apply, update)
		}
	}
	if resources.HandsOver(obs.memcached) && slices.ContainsFunc(p.actions.Apply, func(a apply) bool { return a.Key.Kind == resources.KindReplicaSet }) {
		p.actions.Secret = build.HandoverSecret()
		p.actions.SecretIsFirst = !isCreated && len(obs.shards) == 0 && obs.now.Sub(obs.memcached.CreationTimestamp.Time).Abs() < formerSecret
	}
	return p
}

// isApplied reports whether an object is up to date: the fields that the operator owns have
// the values that it would write. Fields with other owners don't count.
func isApplied(want runtime.ApplyConfiguration, have client.Object) bool {
	var (
		owned any
		err   error
	)
	switch have := have.(type) {
	case *appsv1.ReplicaSet:
		owned, err = appsv1ac.ExtractReplicaSet(have, v1alpha1.ManagedByValue)
	case *corev1.Service:
		owned, err = corev1ac.ExtractService(have, v1alpha1.ManagedByValue)
	case *policyv1.PodDisruptionBudget:
		owned, err = policyv1ac.ExtractPodDisruptionBudget(have, v1alpha1.ManagedByValue)
	case *networkingv1.NetworkPolicy:
		owned, err = networkingv1ac.ExtractNetworkPolicy(have, v1alpha1.ManagedByValue)
	default:
		err = fmt.Errorf("the operator applies no %T", have)
	}
	return err == nil && equality.Semantic.DeepEqual(owned, want)
}

// planDeletions deletes the objects that the spec disables, and the shards beyond the size after a
// delay, highest ordinal first, and the Services before the pod: clients should lose the name
// before the server.
func planDeletions(obs *observation, delay time.Duration) Actions {
	m := obs.memcached
	var disabled, extras []client.Object
	for key, have := range obs.objects {
		ordinal, isShard := key.Ordinal(m.Name)
		switch {
		case have.owner != ours || have.GetDeletionTimestamp() != nil:
		case resources.IsDisabled(m, key):
			disabled = append(disabled, have.Object)
		case isShard && ordinal >= int(*m.Spec.Size):
			extras = append(extras, have.Object)
		}
	}
	inOrder := func(a, b client.Object) int {
		keyA, keyB := keyOf(a), keyOf(b)
		ordinalA, _ := keyA.Ordinal(m.Name)
		ordinalB, _ := keyB.Ordinal(m.Name)
		// Of a shard's, the ReplicaSet has the first kind in the alphabet and is deleted last.
		return cmp.Or(ordinalB-ordinalA, strings.Compare(string(keyB.Kind), string(keyA.Kind)), strings.Compare(keyB.Name, keyA.Name))
	}
	slices.SortFunc(disabled, inOrder)
	slices.SortFunc(extras, inOrder)
	a := Actions{Delete: disabled}
	if len(extras) > 0 && delay > 0 {
		a.RequeueAfter = delay
		return a
	}
	a.Delete = append(a.Delete, extras...)
	return a
}
