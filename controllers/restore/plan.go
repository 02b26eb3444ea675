package restore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Plan implements transfer.Transfer.
func (obs *observation) Plan(rejection error) transfer.Plan {
	if obs.restore.DeletionTimestamp != nil { // the garbage collector deletes what it owns
		return transfer.Plan{Status: obs.LastStatus()}
	}
	p := transfer.MakePlan(obs, rejection)
	if obs.restore.Status.JobName != p.Status.JobName { // it starts: the backup may be deleted before it has finished
		p.Status.Snapshot = snapshotOf(obs)
	}
	return p
}

// Blocker implements transfer.Transfer. What is final comes first.
func (obs *observation) Blocker() *transfer.Blocker {
	for _, check := range []func(*observation) *transfer.Blocker{
		invalidTarget, invalidBackup, invalidSnapshot, notAllowed, backupPending, targetPending, shardReplaced, itemsMoving, otherRestore,
	} {
		if blocker := check(obs); blocker != nil {
			return blocker
		}
	}
	return nil
}

// invalidTarget returns why the Memcached can't be filled, or nil.
func invalidTarget(obs *observation) *transfer.Blocker {
	m, name := obs.Memcached, obs.restore.Spec.MemcachedRef.Name
	switch {
	case m == nil:
		return transfer.WaitForMissing(v1beta1.ReasonMemcachedNotFound,
			"there is no Memcached %s in this namespace. Create it", name)
	case m.DeletionTimestamp != nil:
		return transfer.Reject(v1beta1.ReasonMemcachedDeleting, "Memcached %s is being deleted. Restore into another one", name)
	case resources.Listed(m) == 0:
		return transfer.Reject(v1beta1.ReasonNoShards,
			"Memcached %s has no shard to fill. Create another restore once its size is 1 or more", name)
	}
	for _, shard := range obs.restore.Spec.Shards {
		if size := resources.Listed(m); int(shard) >= size {
			return transfer.Reject(v1beta1.ReasonShardNotFound,
				"spec.shards names shard %d, but Memcached %s has the shards 0 to %d", shard, name, size-1)
		}
	}
	return nil
}

// invalidBackup returns why the backup has no snapshot to wait for, or nil.
func invalidBackup(obs *observation) *transfer.Blocker {
	ref, b := obs.restore.Spec.BackupRef, obs.backup
	switch {
	case ref == nil:
		return nil
	case b == nil:
		return transfer.WaitForMissing(v1beta1.ReasonBackupNotFound,
			"there is no MemcachedBackup %s in this namespace. "+
				"To restore a snapshot whose backup was deleted, or is in another namespace, set spec.snapshot", ref.Name)
	case b.DeletionTimestamp != nil:
		return transfer.Reject(v1beta1.ReasonBackupDeleting,
			"MemcachedBackup %s is being deleted. Restore from another one", ref.Name)
	case b.Status.Phase == v1beta1.TransferFailed:
		return transfer.Reject(v1beta1.ReasonBackupNotComplete,
			"MemcachedBackup %s is Failed (%s) and has no snapshot. Restore from another one", ref.Name, b.Status.Reason())
	case b.Status.Phase == v1beta1.TransferComplete && b.Status.Snapshot == nil:
		return transfer.Reject(v1beta1.ReasonBackupNotComplete,
			"the status of MemcachedBackup %s has no snapshot. Set spec.snapshot instead", ref.Name)
	}
	return nil
}

// invalidSnapshot returns why a snapshot does not fit, as far as the status of its
// backup says, or nil. The Job checks the rest.
func invalidSnapshot(obs *observation) *transfer.Blocker {
	s := snapshotOf(obs)
	if s == nil {
		return nil
	}
	m, maxAge := obs.Memcached, obs.restore.Spec.MaxAgeSeconds
	size := resources.Listed(m)
	switch age := obs.Now.Sub(s.SnapshotTime.Time); {
	case maxAge != nil && age > v1beta1.Seconds(maxAge, 0):
		return transfer.Reject(v1beta1.ReasonSnapshotTooOld,
			"the snapshot was taken %s ago, but spec.maxAgeSeconds is %d. "+
				"Restore from a newer one", age.Truncate(time.Second), *maxAge)
	case int(s.Shards) != size && m.Spec.Access.Hashing == nil:
		return transfer.Reject(v1beta1.ReasonSizeDiffers,
			"the snapshot has %d shards but Memcached %s has %d, so keys belong to other shards. "+
				"Set spec.access.hashing of the Memcached to what its clients use, or restore into one of the same size", s.Shards, m.Name, size)
	}
	return nil
}

func notAllowed(obs *observation) *transfer.Blocker { return obs.NotAllowed(obs.Store()) }

// backupPending returns that the backup is not complete yet, or nil.
func backupPending(obs *observation) *transfer.Blocker {
	if ref := obs.restore.Spec.BackupRef; ref != nil && obs.backup.Status.Phase != v1beta1.TransferComplete {
		return transfer.WaitFor(v1beta1.ReasonBackupNotComplete, "waiting until MemcachedBackup %s is Complete", ref.Name)
	}
	return nil
}

// targetPending returns why the shards are not reachable yet, or nil.
func targetPending(obs *observation) *transfer.Blocker {
	m := obs.Memcached
	if b := m.Status.Bootstrap; b.IsRunning() && b.RestoreName != obs.restore.Name {
		return transfer.WaitFor(v1beta1.ReasonBootstrapping, "waiting until MemcachedRestore %s has filled Memcached %s", b.RestoreName, m.Name)
	}
	return obs.Unreachable(obs.restore.Spec.Shards...)
}

// shardReplaced returns that a shard is being replaced or is next, or nil. A replacement that
// waits for something else, such as a maintenance window, may take days.
func shardReplaced(obs *observation) *transfer.Blocker {
	m := obs.Memcached
	u := m.Status.Update
	if u == nil || u.Method != v1beta1.UpdateReplace {
		return nil
	}
	switch u.Gate {
	case "", v1beta1.GateShardInTransition, v1beta1.GateRestoreRunning, v1beta1.GateEmptyStartNotAnnounced:
		return transfer.WaitFor(v1beta1.ReasonShardReplaced, "waiting until shard %s of Memcached %s is replaced", u.Shard, m.Name)
	}
	return nil
}

// itemsMoving returns that the shards compare the items that move, and delete those that only one of two has, or nil. A change of the number
// of shards that only copies them waits for the restore. One that fills a lost shard keeps the items that don't move, and clients miss them until
// then.
func itemsMoving(obs *observation) *transfer.Blocker {
	m, steps := obs.Memcached, []v1beta1.ScalingStep{v1beta1.ScalingClosing}
	if obs.restore.Annotations[annotations.Refills] == "" {
		steps = append(steps, v1beta1.ScalingPublishing, v1beta1.ScalingWaiting)
	}
	if s := m.Status.Scaling; s != nil && slices.Contains(steps, s.Step) {
		return transfer.WaitFor(v1beta1.ReasonItemsMoving, "waiting until items have moved between the shards of Memcached %s, as its status.scaling says", m.Name)
	}
	return nil
}

// otherRestore returns that another restore writes into the same shards, or nil. Of waiting
// restores, the oldest is next.
func otherRestore(obs *observation) *transfer.Blocker {
	for _, o := range obs.others {
		waits := o.Status.Phase == v1beta1.TransferPending && o.Status.Reason() == v1beta1.ReasonRestoreRunning && obs.restore.Status.Phase != v1beta1.TransferRunning
		if overlap(o.Spec.Shards, obs.restore.Spec.Shards) && (o.IsActive(obs.Now) || waits && isOlder(o, obs.restore)) {
			return transfer.WaitFor(v1beta1.ReasonRestoreRunning, "waiting until MemcachedRestore %s has finished", o.Name)
		}
	}
	return nil
}

// overlap reports whether two restores write into a common shard; none named is all.
func overlap(a, b []int32) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(shard int32) bool { return slices.Contains(b, shard) })
}

func isOlder(a, b *v1beta1.MemcachedRestore) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

// Summary implements transfer.Transfer.
func (obs *observation) Summary() string {
	return fmt.Sprintf("Job %s will fill Memcached %s from %s", obs.Job.Name, obs.Memcached.Name, transfer.Describe(obs.Store(), obs.path()))
}

// Record implements transfer.Transfer.
func (obs *observation) Record(s transfer.Status, outcome *snapshotwire.Outcome) (recorded transfer.Status, summary, failure string) {
	s.Restored, s.Kept, s.Expired, s.Rejected = outcome.Restored, outcome.Kept, outcome.Expired, outcome.Rejected
	if outcome.Snapshot != nil {
		s.Snapshot = transfer.SnapshotOf(outcome.Snapshot, obs.path())
	}
	return s, fmt.Sprintf("restored %d items; %d existed already, %d had expired, memcached rejected %d", s.Restored, s.Kept, s.Expired, s.Rejected), ""
}
