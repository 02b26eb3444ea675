package memcached

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// memo remembers what saves work, and nothing that is decided by: an operator without
// it, as one that has just been started, does the same.
//
// Which objects were found to be as they should be: to find out takes a millisecond an
// object, and most reconciles look at objects that have not changed since the last.
// What it says is true of one version of an object and of one wish.
//
// Which version of a Memcached this operator has itself made an old one: a reconcile
// that the cache shows that version still could only have its status refused.
//
// It holds an entry for each object of the Memcacheds that exist.
type memo struct {
	lock  sync.Mutex
	known map[types.NamespacedName]known
}

// known is what is remembered of a Memcached.
type known struct {
	found finding
	// old is the version that was written to last, and when.
	old   string
	oldAt time.Time
}

// hears is how long a cache may take to show what was written.
const hears = 5 * time.Second

// isOld says whether the cache has yet to show what was written to a Memcached. It does
// not say so for long: an etcd that was restored brings old versions back.
func (k known) isOld(m *v1alpha1.Memcached, now time.Time) bool {
	return k.old == m.ResourceVersion && now.Sub(k.oldAt).Abs() < hears
}

// finding is what was found of a Memcached's objects.
type finding map[manifests.Key]fulfilled

// fulfilled is one version of an object, and the wish that it fulfils.
type fulfilled struct {
	uid     types.UID
	version string
	wish    wish
}

// wish is a hash of all that an object is built from.
type wish [sha256.Size]byte

// has says whether an object was found to be as is wished.
func (f finding) has(key manifests.Key, have object, wishes map[manifests.Key]wish) bool {
	is, ok := f[key]
	return ok && is == fulfilled{have.GetUID(), have.GetResourceVersion(), wishes[key]}
}

// covers says whether all objects that are wished for were found to be as is wished.
func (f finding) covers(wishes map[manifests.Key]wish, objects map[manifests.Key]object) bool {
	for key := range wishes {
		if have, exists := objects[key]; !exists || !f.has(key, have, wishes) {
			return false
		}
	}
	return true
}

// of returns what is remembered of a Memcached.
func (m *memo) of(name types.NamespacedName) known {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.known[name]
}

// note replaces what is remembered of a Memcached.
func (m *memo) note(name types.NamespacedName, k known) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.known == nil {
		m.known = map[types.NamespacedName]known{}
	}
	m.known[name] = k
}

// forget forgets a Memcached that does not exist.
func (m *memo) forget(name types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.known, name)
}

// wishesOf returns what is wished of each object of a Memcached: a hash of all that it
// is built from, but for what the operator was started with.
func wishesOf(m *v1alpha1.Memcached, shards []manifests.Shard) map[manifests.Key]wish {
	keys := manifests.Keys(m.Name, len(shards))
	wishes := make(map[manifests.Key]wish, len(keys))
	common := wishOf(m, manifests.Shard{})
	for _, key := range keys {
		wishes[key] = common
		if ordinal, ok := manifests.Ordinal(m.Name, key.Name); ok && key.Kind == manifests.KindReplicaSet {
			wishes[key] = wishOf(m, shards[ordinal])
		}
	}
	return wishes
}

func wishOf(m *v1alpha1.Memcached, shard manifests.Shard) wish {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %d %t %q %q", m.UID, m.Generation, shard.Surge, shard.HoldUntil, shard.Asked.String())
	for _, name := range slices.Sorted(maps.Keys(shard.Annotations)) {
		fmt.Fprintf(sum, " %q %q", name, shard.Annotations[name])
	}
	return wish(sum.Sum(nil))
}
