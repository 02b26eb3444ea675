package memcached

import (
	"cmp"
	"slices"
	"strings"
	"time"

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
		case object.IsApplied(have.APIObject):
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

// planDeletions deletes the objects that the spec disables, and the shards beyond the size after a
// delay, highest ordinal first, and the Services before the pod: clients should lose the name
// before the server.
func planDeletions(obs *observation, delay time.Duration) Actions {
	m := obs.memcached
	var disabled, extras []resources.APIObject
	for key, have := range obs.objects {
		ordinal, isShard := key.Ordinal(m.Name)
		switch {
		case have.owner != ours || have.GetDeletionTimestamp() != nil:
		case resources.IsDisabled(m, key):
			disabled = append(disabled, have.APIObject)
		case isShard && ordinal >= int(*m.Spec.Size):
			extras = append(extras, have.APIObject)
		}
	}
	inOrder := func(a, b resources.APIObject) int {
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
