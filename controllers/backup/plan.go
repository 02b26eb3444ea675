package backup

import (
	"cmp"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Plan implements transfer.Transfer. A backup that deletes its snapshot has a finalizer from before it starts; its policy may
// change later.
func (obs *observation) Plan(rejection error) transfer.Plan {
	b := obs.backup
	started, deletes := b.Status.JobName != "", b.Spec.DeletionPolicy == v1beta1.SnapshotDelete
	switch {
	case b.DeletionTimestamp != nil:
		return planDeletion(obs, rejection)
	case deletes && !hasFinalizer(b) && (started || !b.Status.IsFinished() && obs.Blocker() == nil):
		return transfer.Plan{Status: obs.LastStatus(), Actions: transfer.Actions{Finalizer: transfer.AddFinalizer}}
	case !deletes && hasFinalizer(b):
		return transfer.Plan{Status: obs.LastStatus(), Actions: transfer.Actions{Finalizer: transfer.RemoveFinalizer}}
	}
	return transfer.MakePlan(obs, rejection)
}

// Blocker implements transfer.Transfer.
func (obs *observation) Blocker() *transfer.Blocker {
	m, name := obs.Memcached, obs.backup.Spec.MemcachedRef.Name
	switch {
	case m == nil:
		return transfer.WaitForMissing(v1beta1.ReasonMemcachedNotFound,
			"there is no Memcached %s in this namespace. Create it", name)
	case resources.Listed(m) == 0:
		return transfer.Reject(v1beta1.ReasonNoShards,
			"Memcached %s has no shard to copy. Create another backup once its size is 1 or more", name)
	}
	switch unreachable := obs.Unreachable(); {
	case m.DeletionTimestamp != nil && unreachable != nil:
		return transfer.Reject(v1beta1.ReasonMemcachedDeleting,
			"Memcached %s is being deleted, and not all of its shards are reachable: %s. "+
				"For a backup before a deletion, set spec.deletionPolicy to Backup", name, unreachable.Message)
	case m.Status.Bootstrap.IsRunning():
		return transfer.WaitFor(v1beta1.ReasonBootstrapping, "waiting until Memcached %s is filled from a snapshot", name)
	default:
		return cmp.Or(obs.NotAllowed(obs.Store()), unreachable, itemsDeleted(m))
	}
}

// itemsDeleted returns that the shards delete copies of items, or nil. To a Job, a shard whose items are mostly copies would have lost them. It
// isn't awaited beyond the deletion of the Memcached, spec.paused or a rejected spec: the status doesn't say then that it is over.
func itemsDeleted(m *v1beta1.Memcached) *transfer.Blocker {
	s, p := m.Status.Scaling, m.Status.Purge
	switch {
	case m.DeletionTimestamp != nil, m.Spec.Paused, resources.IsRejected(m):
	case s != nil && s.Step == v1beta1.ScalingClosing:
		return transfer.WaitFor(v1beta1.ReasonItemsMoving, "waiting until Memcached %s has deleted the items that have moved from their shards, as its status.scaling says", m.Name)
	case p != nil && p.Phase == v1beta1.TransferRunning && strings.HasPrefix(p.Request, v1beta1.PurgeDelete):
		return transfer.WaitFor(v1beta1.ReasonItemsMoving, "waiting until Memcached %s has deleted old copies of items, as its status.purge says", m.Name)
	}
	return nil
}

// Summary implements transfer.Transfer.
func (obs *observation) Summary() string {
	return fmt.Sprintf("Job %s will copy %d shards of Memcached %s", obs.Job.Name, len(obs.Memcached.Status.Servers), obs.Memcached.Name)
}

// Store implements transfer.Transfer.
func (obs *observation) Store() v1beta1.SnapshotStore { return obs.backup.Spec.Store }

// NewJob implements transfer.Transfer.
func (obs *observation) NewJob() *batchv1.Job {
	b, m := obs.backup, obs.Memcached
	items, bytes := transfer.Limits(b.Spec.RateLimit)
	return obs.job(transfer.JobSpec{
		Prefix: transfer.Backup, Action: snapshotwire.ActionSave, DeadlineSeconds: b.Spec.DeadlineSeconds,
		Resources: b.Spec.Resources, Cache: transfer.CacheSizeOf(m), Memcached: m,
		Task: snapshotwire.Task{
			Memcached:      snapshotwire.Memcached{Namespace: m.Namespace, Name: m.Name, UID: string(m.UID), Version: m.Status.Version},
			Servers:        m.Status.Servers,
			ItemsPerSecond: items, BytesPerSecond: bytes,
		},
	})
}

func (obs *observation) job(spec transfer.JobSpec) *batchv1.Job {
	spec.Owner, spec.Store, spec.Task.Path = obs.backup, obs.Store(), transfer.SnapshotPath(obs.backup)
	spec.Basis = obs.Basis()
	return obs.Options.Job(spec)
}

// Record implements transfer.Transfer.
func (obs *observation) Record(s transfer.Status, outcome *snapshotwire.Outcome) (recorded transfer.Status, summary, failure string) {
	if s.Phase != v1beta1.TransferComplete {
		return s, "", ""
	}
	snapshot := transfer.SnapshotOf(outcome.Snapshot, transfer.SnapshotPath(obs.backup))
	if snapshot == nil {
		return s, "", fmt.Sprintf("Job %s did not report its snapshot. Create another backup", obs.Job.Name)
	}
	s.Snapshot = snapshot
	return s, fmt.Sprintf("copied %d items of %d shards to %s", snapshot.Items, snapshot.Shards, snapshot.Path), ""
}
