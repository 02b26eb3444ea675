package memcached

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/internal/serverclock"
)

// memories are what the last reconcile of each Memcached remembers.
type memories struct {
	lock sync.Mutex
	of   map[types.NamespacedName]memory
}

type memory struct {
	observation.Memory
	replaced replacedVersion
}

func (m *memories) get(name types.NamespacedName) (of memory, known bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	of, known = m.of[name]
	return of, known
}

func (m *memories) set(name types.NamespacedName, to memory) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName]memory{}
	}
	m.of[name] = to
}

func (m *memories) forget(name types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.of, name)
}

// replacedVersion is the version of a Memcached that the operator has replaced by its last write, and when. The API server
// rejects a status that is computed from it, which the cache may still contain.
type replacedVersion struct {
	version string
	at      time.Time
}

// staleCacheTimeout is how long a cache may take to contain what was written.
const staleCacheTimeout = 5 * time.Second

// isOf reports whether a Memcached from the cache is the replaced version. It stops after a while: an etcd that was restored
// returns old versions.
func (r replacedVersion) isOf(m *v1beta1.Memcached, now time.Time) bool {
	return r.version == m.ResourceVersion && serverclock.Age(now, r.at) < staleCacheTimeout
}

// next returns the replaced version after a reconcile that has read a version.
func (r replacedVersion) next(read string, m *v1beta1.Memcached, now time.Time) replacedVersion {
	if m.ResourceVersion == read {
		return r
	}
	return replacedVersion{read, now}
}
