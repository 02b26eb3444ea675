package snapshotjob

import (
	"fmt"
	"path"
	"strings"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// defaults of the API server, in items and mebibytes a second of each shard.
const (
	defaultItems     = 20000
	defaultMebibytes = 32
)

// Limits returns what may be asked of a shard each second, in items and in bytes; 0
// is no limit.
func Limits(l *v1alpha1.RateLimit) (items int, bytes int64) {
	items, mebibytes := defaultItems, int64(defaultMebibytes)
	if l != nil && l.ItemsPerSecond != nil {
		items = int(*l.ItemsPerSecond)
	}
	if l != nil && l.MebibytesPerSecond != nil {
		mebibytes = int64(*l.MebibytesPerSecond)
	}
	return items, mebibytes << 20
}

// SnapshotPath returns where in its store the snapshot of a backup lies. A backup
// that is made anew under the same name gets another one.
func SnapshotPath(b *v1alpha1.MemcachedBackup) string {
	uid := string(b.UID)
	return path.Join(b.Namespace, b.Spec.Memcached.Name, b.Name+"-"+uid[:min(8, len(uid))])
}

// Shard returns the name of a shard of a Memcached.
func Shard(memcached string, ordinal int) string { return fmt.Sprintf("%s-%d", memcached, ordinal) }

// HasServers says whether the status names an address for each shard that is asked
// for, so that each has its ordinal's place.
func HasServers(m *v1alpha1.Memcached) bool {
	if m.Spec.Size == nil || len(m.Status.Servers) != int(*m.Spec.Size) {
		return false
	}
	for ordinal, server := range m.Status.Servers {
		if !strings.HasPrefix(server, Shard(m.Name, ordinal)+".") {
			return false
		}
	}
	return true
}
