package plan

import (
	"slices"

	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// canMove reports whether a shard could leave its node soon, with its items: nothing blocks it until a user does something, or a window
// opens.
func canMove(m *v1beta1.Memcached, d rollout.Decision, shards []shard.State) bool {
	lasting := []rollout.Gate{rollout.GateUpdateStrategyInvalid, rollout.GateSecretInvalid, rollout.GateOutsideMaintenanceWindow, rollout.GateScaling}
	return !slices.Contains(lasting, d.Gate) && !d.NeedsIntervention &&
		!slices.ContainsFunc(shards, func(s shard.State) bool { return s.Active != nil && !resources.CanHandOver(m, s.Active) })
}

// pending returns how many shards have a second pod that isn't ready, or that no node accepts.
func pending(obs *observation.Observation, shards []resources.Shard) (n int32) {
	for ordinal, s := range shards {
		pods := obs.Pods[resources.ShardName(obs.Memcached.Name, ordinal)] // those that are ready come first
		if s.Surge && (len(pods) < 2 || !shard.IsReady(pods[1])) {
			n++
		}
	}
	return n
}

// planPaused returns the only objects that are written while a Memcached is paused: its budget, since evictions must not wait for moves, and
// the ReplicaSets of shards of whose two pods one has to go, or of which one pod is left. Another second pod stays, and the budget doesn't
// count it.
func planPaused(obs *observation.Observation, build *resources.Builder, shards []shard.State, desired []resources.Shard) Actions {
	desired = slices.Clone(desired)
	keys := []resources.Key{budgetKey(obs.Memcached)}
	for i := range shards {
		s := &shards[i]
		want, hasTwo := &desired[s.Ordinal], ptr.Deref(s.Set.Spec.Replicas, 1) > 1
		if hasTwo && !want.Surge && s.IsReady && (s.Next == nil || shard.IsReady(s.Next)) {
			keys = append(keys, resources.Key{Kind: resources.KindReplicaSet, Name: s.Name})
		} else {
			want.Surge = hasTwo
		}
	}
	return planResources(obs, build, desired, false, keys...).Actions
}

// planDeleted returns the only object that is written while a Memcached is being deleted: its budget, since no shard moves any more. One that
// the deletion orphans must not get its owner again, with which it would be deleted.
func planDeleted(obs *observation.Observation, build *resources.Builder, shards []shard.State) Actions {
	key := budgetKey(obs.Memcached)
	budget := obs.Objects[key]
	if budget.Owner != observation.Ours {
		return Actions{}
	}
	desired := make([]resources.Shard, resources.SizesOf(obs.Memcached).Exist)
	for i := range shards {
		desired[shards[i].Ordinal].Surge = ptr.Deref(shards[i].Set.Spec.Replicas, 1) > 1
	}
	a := planResources(obs, build, desired, false, key).Actions
	for i := range a.Apply {
		a.Apply[i].Version = budget.GetResourceVersion()
	}
	return a
}

func budgetKey(m *v1beta1.Memcached) resources.Key {
	return resources.Key{Kind: resources.KindPodDisruptionBudget, Name: m.Name}
}

// planResources returns the objects that are missing or not up to date, or of some keys those that aren't up to date. canMove is whether
// shards can leave a node.
func planResources(obs *observation.Observation, build *resources.Builder, shards []resources.Shard, canMove bool, keys ...resources.Key) Resources {
	p := Resources{UpToDate: observation.UpToDate{}}
	handover := obs.Memcached.Spec.UpdateStrategy.Handover
	for _, want := range build.Desired(shards) {
		if want.Key.Kind == resources.KindPodDisruptionBudget {
			want.MaxUnavailable += pending(obs, shards) // Kubernetes expects them
			if canMove && handover.MovesEarly() && handover.NodeDrain.Mode == v1beta1.NodeDrainRequired {
				want.MaxUnavailable = 0
			}
		}
		have, exists := obs.Objects[want.Key]
		if len(keys) > 0 && (!exists || !slices.Contains(keys, want.Key)) {
			continue
		}
		switch {
		case exists && have.Owner == observation.Foreign:
			p.Conflicts = append(p.Conflicts, want.Key)
			p.Actions.RequeueAfter = ConflictRecheck
			continue
		case exists && (have.Owner == observation.Predecessors || have.GetDeletionTimestamp() != nil):
			p.Leftovers = append(p.Leftovers, want.Key)
			continue
		}
		var current observation.Version
		if exists {
			current = observation.NewVersion(obs.Memcached, want, have)
			if obs.UpToDate[want.Key] == current {
				p.UpToDate[want.Key] = current
				continue
			}
		}
		object := build.Build(want)
		transition := object.TransitionFrom(have.APIObject)
		switch {
		case !exists:
			p.Actions.Apply = append(p.Actions.Apply, Apply{Object: object})
		case transition.Recreate:
			p.Actions.Delete = append(p.Actions.Delete, have.APIObject)
		case !transition.Changes && object.IsApplied(have.APIObject):
			p.UpToDate[want.Key] = current
		default:
			update := Apply{Object: object, UID: have.GetUID()}
			if want.Key.Kind == resources.KindReplicaSet {
				update.Version = have.GetResourceVersion()
			}
			p.Actions.Apply = append(p.Actions.Apply, update)
		}
	}
	// A Secret that exists costs a rejected write: one for each update, with the first shard, is enough.
	needsKey := func(a Apply) bool {
		return a.Key.Kind == resources.KindReplicaSet && (a.UID == "" || a.Key.Name == resources.ShardName(obs.Memcached.Name, 0))
	}
	if resources.HandsOver(obs.Memcached) && slices.ContainsFunc(p.Actions.Apply, needsKey) {
		p.Actions.Secrets = build.KeySecrets()
	}
	return p
}

// Resources is what the Memcached's own objects need.
type Resources struct {
	Actions Actions
	// Conflicts are names that other owners use.
	Conflicts []resources.Key
	// Leftovers are names of objects that are being deleted, or that a deleted Memcached of the same name still has.
	Leftovers []resources.Key
	// UpToDate are the objects that are up to date.
	UpToDate observation.UpToDate
}
