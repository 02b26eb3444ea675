package memcached

import (
	"fmt"
	"slices"
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

// recheck returns when to look up conflicting names again; 0 is never.
func (p resourcesPlan) recheck() time.Duration {
	if len(p.conflicts) > 0 {
		return conflictRecheck
	}
	return 0
}

// planResources returns the objects that are missing or not up to date.
func planResources(obs *observation, shards []resources.Shard, bootstrap bootstrapPlan, options resources.Options) resourcesPlan {
	hashes := applycache.Hashes(obs.memcached, shards)
	if allCurrent(obs, hashes) {
		return resourcesPlan{cached: obs.cached}
	}
	desired, err := resources.Build(obs.memcached, func(ordinal int) resources.Shard { return shards[ordinal] }, options)
	if err != nil {
		return resourcesPlan{cached: obs.cached, rejected: &shard.Problem{Reason: v1alpha1.ReasonApplyRejected, Message: err.Error()}}
	}
	p := resourcesPlan{cached: applycache.Objects{}}
	for _, want := range desired {
		have, exists := obs.objects[want.Key]
		switch {
		case bootstrap.delaysShards && want.Key.Kind == resources.KindReplicaSet:
		case !exists:
			p.actions.Apply = append(p.actions.Apply, apply{Object: want})
		case have.owner == foreign:
			p.conflicts = append(p.conflicts, want.Key)
		case have.owner == predecessors || have.GetDeletionTimestamp() != nil:
			p.leftovers = append(p.leftovers, want.Key)
		case obs.cached.IsCurrent(want.Key, have, hashes) || isApplied(want.Apply, have.Object):
			p.cached[want.Key] = applycache.NewObject(have, hashes[want.Key])
		default:
			update := apply{Object: want, uid: have.GetUID()}
			if want.Key.Kind == resources.KindReplicaSet {
				update.version = have.GetResourceVersion()
			}
			p.actions.Apply = append(p.actions.Apply, update)
		}
	}
	return p
}

// allCurrent reports whether an earlier reconcile found all desired objects up to date.
func allCurrent(obs *observation, hashes map[resources.Key]applycache.Hash) bool {
	for key := range hashes {
		if have, exists := obs.objects[key]; !exists || !obs.cached.IsCurrent(key, have, hashes) {
			return false
		}
	}
	return true
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

// planScaleIn deletes the shards beyond the size, highest ordinal first, and the Service
// before the pod: clients should lose the name before the server.
func planScaleIn(obs *observation) Actions {
	m := obs.memcached
	type extra struct {
		ordinal int
		object  client.Object
	}
	var extras []extra
	for key, have := range obs.objects {
		ordinal, isShard := resources.Ordinal(m.Name, key.Name)
		if isShard && ordinal >= int(*m.Spec.Size) && have.owner == ours && have.GetDeletionTimestamp() == nil {
			extras = append(extras, extra{ordinal, have.Object})
		}
	}
	slices.SortFunc(extras, func(a, b extra) int {
		if a.ordinal != b.ordinal {
			return b.ordinal - a.ordinal
		}
		if _, isService := a.object.(*corev1.Service); isService {
			return -1
		}
		return 1
	})
	var a Actions
	for _, e := range extras {
		a.Delete = append(a.Delete, e.object)
	}
	return a
}
