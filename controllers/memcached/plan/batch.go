package plan

import (
	"slices"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/applycache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// BatchSize bounds how many objects a reconcile applies, patches, creates and deletes each, and how many missing names it
// looks up. The others follow in the next reconcile, behind the requests for other Memcacheds: 1,000 shards are 2,003
// objects, and would occupy a worker for tens of seconds.
const BatchSize = 50

// Batch returns which objects a reconcile works on: up to BatchSize without a failed attempt, in
// their order, and as many of the others, the longest ago first. So an object that can't be
// written delays no other.
func Batch(keys []resources.Key, failed applycache.Attempts) map[resources.Key]bool {
	chosen := make(map[resources.Key]bool, min(len(keys), 2*BatchSize))
	var again []resources.Key
	for _, key := range keys {
		if _, ok := failed[key]; ok {
			again = append(again, key)
		} else if len(chosen) < BatchSize {
			chosen[key] = true
		}
	}
	slices.SortStableFunc(again, func(a, b resources.Key) int { return failed[a].At.Compare(failed[b].At) })
	for _, key := range again[:min(len(again), BatchSize)] {
		chosen[key] = true
	}
	return chosen
}

// BatchContinues reports whether the next batch follows at once: a write of this one succeeded,
// or nothing has been attempted yet for an object that is left.
func BatchContinues(postponed []resources.Key, succeeded bool, failed applycache.Attempts) bool {
	return slices.ContainsFunc(postponed, func(key resources.Key) bool {
		_, ok := failed[key]
		return succeeded || !ok
	})
}

// batch returns the actions of one reconcile.
func (a Actions) batch(failed applycache.Attempts) Actions {
	a.Apply, a.Postponed = batchOf(a.Apply, failed, a.Postponed, func(o Apply) resources.Key { return o.Key })
	a.Patch, a.Postponed = batchOf(a.Patch, failed, a.Postponed, func(p PodPatch) resources.Key {
		return resources.Key{Kind: resources.KindPod, Name: p.Pod.Name}
	})
	a.Create, a.Postponed = batchOf(a.Create, failed, a.Postponed, resources.KeyOf)
	a.Delete, a.Postponed = batchOf(a.Delete, failed, a.Postponed, resources.KeyOf)
	a.ScaleIn, a.Postponed = batchOf(a.ScaleIn, failed, a.Postponed, resources.KeyOf)
	return a
}

func batchOf[T any](all []T, failed applycache.Attempts, postponed []resources.Key, keyOf func(T) resources.Key) ([]T, []resources.Key) {
	keys := make([]resources.Key, len(all))
	for i, o := range all {
		keys[i] = keyOf(o)
	}
	if len(keys) <= BatchSize {
		return all, postponed
	}
	chosen := Batch(keys, failed)
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
