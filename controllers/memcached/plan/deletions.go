package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// planDeletions deletes the objects that the spec disables, and the shards beyond the size after a
// delay, highest ordinal first, and the Services before the pod: clients should lose the name
// before the server.
func planDeletions(obs *observation.Observation, delay time.Duration) Actions {
	m := obs.Memcached
	var disabled, extras []resources.APIObject
	for key, have := range obs.Objects {
		ordinal, isShard := key.Ordinal(m.Name)
		switch {
		case !have.IsManaged() || have.GetDeletionTimestamp() != nil:
		case resources.IsDisabled(m, key):
			disabled = append(disabled, have.APIObject)
		case isShard && ordinal >= resources.SizesOf(m).Exist:
			extras = append(extras, have.APIObject)
		}
	}
	inOrder := func(a, b resources.APIObject) int {
		keyA, keyB := resources.KeyOf(a), resources.KeyOf(b)
		ordinalA, _ := keyA.Ordinal(m.Name)
		ordinalB, _ := keyB.Ordinal(m.Name)
		// Of a shard's, the ReplicaSet has the first kind in the alphabet and is deleted last.
		return cmp.Or(ordinalB-ordinalA, strings.Compare(string(keyB.Kind), string(keyA.Kind)), strings.Compare(keyB.Name, keyA.Name))
	}
	slices.SortFunc(disabled, inOrder)
	slices.SortFunc(extras, inOrder)
	if len(extras) > 0 && delay > 0 {
		return Actions{Delete: disabled, RequeueAfter: delay}
	}
	return Actions{Delete: disabled, ScaleIn: extras}
}
