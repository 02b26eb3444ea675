package restore

import (
	"cmp"
	"path"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Store implements transfer.Transfer. It is empty once the backup was deleted; by then the
// Job has its own copy.
func (obs *observation) Store() v1beta1.SnapshotStore {
	switch {
	case obs.restore.Spec.Snapshot != nil:
		return obs.restore.Spec.Snapshot.Store
	case obs.backup != nil:
		return obs.backup.Spec.Store
	}
	return v1beta1.SnapshotStore{}
}

func (obs *observation) path() string {
	if s := obs.restore.Spec.Snapshot; s != nil {
		return path.Clean(s.Path) // the Job takes no other spelling
	}
	return ptr.Deref(cmp.Or(snapshotOf(obs), obs.restore.Status.Snapshot), v1beta1.SnapshotStatus{}).Path
}

func snapshotOf(obs *observation) *v1beta1.SnapshotStatus {
	if obs.backup == nil || obs.backup.Status.Phase != v1beta1.TransferComplete {
		return nil
	}
	return obs.backup.Status.Snapshot
}

// NewJob implements transfer.Transfer.
func (obs *observation) NewJob() *batchv1.Job {
	s, m := obs.restore, obs.Memcached
	items, bytes := transfer.Limits(s.Spec.RateLimit)
	load := &snapshotwire.Load{
		Replace: s.Spec.ExistingItems == v1beta1.ExistingReplace,
		MaxAge:  v1beta1.Seconds(s.Spec.MaxAgeSeconds, 0),
		MaxTTL:  v1beta1.Seconds(s.Spec.MaxTTLSeconds, 0),
	}
	for _, shard := range s.Spec.Shards {
		load.Shards = append(load.Shards, int(shard))
	}
	if h := m.Spec.Access.Hashing; h != nil {
		load.Ring, load.RingServers = string(h.Algorithm), v1beta1.HashedServers(m)
	}
	return obs.Options.Job(transfer.JobSpec{
		Prefix: transfer.Restore, Owner: s,
		Store: obs.Store(), Action: snapshotwire.ActionLoad, DeadlineSeconds: s.Spec.DeadlineSeconds, Basis: obs.Basis(),
		Resources: s.Spec.Resources, Cache: cacheSize(obs), Memcached: m,
		Task: snapshotwire.Task{
			Path: obs.path(), Memcached: snapshotwire.Memcached{Namespace: m.Namespace, Name: m.Name, UID: string(m.UID)},
			Servers: m.Status.Servers, ItemsPerSecond: items, BytesPerSecond: bytes, Load: load,
		},
	})
}

// cacheSize returns the size of the cache that the snapshot was taken of, if its status is known, or else of the Memcached
// that is filled.
func cacheSize(obs *observation) transfer.CacheSize {
	size := transfer.CacheSizeOf(obs.Memcached)
	if s := cmp.Or(snapshotOf(obs), obs.restore.Status.Snapshot); s != nil && s.Bytes > size.Shards*size.Memory {
		return transfer.CacheSize{Shards: 1, Memory: s.Bytes}
	}
	return size
}
