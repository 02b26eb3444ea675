package restore

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// plan is what to write, in this order.
type plan struct {
	// status to tell.
	status v1alpha1.MemcachedRestoreStatus
	// load is what to do about the Job, after the status stands.
	load snapshotjob.Act
	// close are Services that are not needed any more.
	close []corev1.Service
	// requeueAfter is when to look again, if nothing changes before; 0 is never.
	requeueAfter time.Duration
}

// makePlan decides what to do for a restore.
func makePlan(seen *observed) plan {
	switch s := seen.restore.Status; {
	case snapshotjob.HasEnded(s.RunStatus):
		return plan{status: s, load: snapshotjob.ActAfter(seen.load), close: seen.services}
	case s.Phase == v1alpha1.RunRunning:
		return planRun(seen)
	default:
		return planStart(seen)
	}
}

// obstacle is what keeps a restore from beginning. It is for good, or it is waited
// for.
type obstacle struct {
	reason, message string
	passes          bool
}

// obstacleOf returns what keeps a restore from beginning, or nil: first what does so
// for good.
func obstacleOf(seen *observed) *obstacle {
	for _, check := range []func(*observed) *obstacle{targetIsWrong, backupIsWrong, snapshotIsWrong, backupIsNotThereYet, targetIsNotThereYet} {
		if o := check(seen); o != nil {
			return o
		}
	}
	return nil
}

// targetIsWrong returns what keeps the Memcached from being filled at all, or nil.
func targetIsWrong(seen *observed) *obstacle {
	m, name := seen.memcached, seen.restore.Spec.Memcached.Name
	switch {
	case m == nil:
		return &obstacle{reason: v1alpha1.ReasonMemcachedNotFound,
			message: fmt.Sprintf("there is no Memcached %s in this namespace: make it, and another restore", name)}
	case m.DeletionTimestamp != nil:
		return &obstacle{reason: v1alpha1.ReasonMemcachedDeleting,
			message: fmt.Sprintf("Memcached %s is being deleted: restore into one that stays", name)}
	case m.Spec.Size == nil || *m.Spec.Size == 0:
		return &obstacle{reason: v1alpha1.ReasonNothingRuns,
			message: fmt.Sprintf("Memcached %s has no shard to fill: make another restore once its size is 1 or more", name)}
	}
	for _, shard := range seen.restore.Spec.Shards {
		if shard >= *m.Spec.Size {
			return &obstacle{reason: v1alpha1.ReasonShardNotFound,
				message: fmt.Sprintf("spec.shards names shard %d, and Memcached %s has the shards 0 to %d", shard, name, *m.Spec.Size-1)}
		}
	}
	return nil
}

// backupIsWrong returns why the backup will never give a snapshot, or nil.
func backupIsWrong(seen *observed) *obstacle {
	ref, b := seen.restore.Spec.Backup, seen.backup
	switch {
	case ref == nil:
		return nil
	case b == nil:
		return &obstacle{reason: v1alpha1.ReasonBackupNotFound,
			message: fmt.Sprintf("there is no MemcachedBackup %s in this namespace; a snapshot whose backup is gone, or is of another namespace, is named by spec.snapshot", ref.Name)}
	case b.DeletionTimestamp != nil:
		return &obstacle{reason: v1alpha1.ReasonBackupDeleting,
			message: fmt.Sprintf("MemcachedBackup %s is being deleted: restore from another one", ref.Name)}
	case b.Status.Phase == v1alpha1.RunFailed:
		return &obstacle{reason: v1alpha1.ReasonBackupNotComplete,
			message: fmt.Sprintf("MemcachedBackup %s is Failed (%s) and has no snapshot: restore from another one", ref.Name, b.Status.Reason)}
	case b.Status.Phase == v1alpha1.RunComplete && b.Status.Snapshot == nil:
		return &obstacle{reason: v1alpha1.ReasonBackupNotComplete,
			message: fmt.Sprintf("MemcachedBackup %s does not say where its snapshot lies: name it by spec.snapshot", ref.Name)}
	}
	return nil
}

// snapshotIsWrong returns why a snapshot does not suit, as far as that is known
// without reading it, or nil. The Job finds out the rest.
func snapshotIsWrong(seen *observed) *obstacle {
	s := snapshotOf(seen)
	if s == nil {
		return nil
	}
	m, maxAge := seen.memcached, seen.restore.Spec.MaxAge
	switch age := seen.now.Sub(s.TakenAt.Time); {
	case maxAge != nil && age > maxAge.Duration:
		return &obstacle{reason: v1alpha1.ReasonSnapshotTooOld,
			message: fmt.Sprintf("the snapshot was taken %s ago, and spec.maxAge is %s: restore from a newer one", age.Truncate(time.Second), maxAge.Duration)}
	case s.Shards != *m.Spec.Size && m.Spec.Hashing == nil:
		return &obstacle{reason: v1alpha1.ReasonSizeDiffers,
			message: fmt.Sprintf("the snapshot has %d shards and Memcached %s has %d, so that the keys belong elsewhere: say in the Memcached's spec.hashing how the clients choose a key's shard, or restore into one of the same size",
				s.Shards, m.Name, *m.Spec.Size)}
	}
	return nil
}

// backupIsNotThereYet returns that the backup still runs, or nil.
func backupIsNotThereYet(seen *observed) *obstacle {
	if ref := seen.restore.Spec.Backup; ref != nil && seen.backup.Status.Phase != v1alpha1.RunComplete {
		return &obstacle{passes: true, reason: v1alpha1.ReasonBackupNotComplete, message: fmt.Sprintf("MemcachedBackup %s is not Complete yet", ref.Name)}
	}
	return nil
}

// targetIsNotThereYet returns why the shards cannot be reached yet, or nil.
func targetIsNotThereYet(seen *observed) *obstacle {
	m := seen.memcached
	filled := m.Status.Bootstrap
	switch {
	case filled == nil && m.Spec.Bootstrap != nil && metav1.IsControlledBy(seen.restore, m) && len(seen.restore.Spec.Shards) == 0:
		return &obstacle{passes: true, reason: v1alpha1.ReasonBootstrapping, message: fmt.Sprintf("Memcached %s does not hold its shards for this restore yet", m.Name)}
	case bootstraps(seen) && m.Status.Selector != "":
		return nil
	case filled != nil && filled.Phase == v1alpha1.RunRunning && filled.Restore != seen.restore.Name:
		return &obstacle{passes: true, reason: v1alpha1.ReasonBootstrapping,
			message: fmt.Sprintf("Memcached %s is being filled by MemcachedRestore %s: this one begins when the shards serve", m.Name, filled.Restore)}
	case !snapshotjob.HasServers(m):
		return &obstacle{passes: true, reason: v1alpha1.ReasonShardsStarting,
			message: fmt.Sprintf("Memcached %s does not name the addresses of all of its shards in status.servers yet", m.Name)}
	}
	return nil
}

// planStart decides whether a restore begins. The Job is not made before the status
// was read once more: see the doc of this package.
func planStart(seen *observed) plan {
	s := seen.restore
	p := plan{status: s.Status}
	wait := until(s.CreationTimestamp.Time, seen)
	switch o := obstacleOf(seen); {
	case o == nil:
		message := fmt.Sprintf("Job %s is to fill Memcached %s from %s", seen.load.Name, seen.memcached.Name, snapshotjob.Describe(sourceOf(seen)))
		p.status.RunStatus = snapshotjob.Begin(s.Status.RunStatus, s.Generation, seen.load.Name, message, seen.now)
		p.status.Snapshot = snapshotOf(seen)
		p.requeueAfter = lookSoon
	case !o.passes || wait <= 0:
		p.refuse(seen, o)
	default:
		p.status.RunStatus = snapshotjob.Wait(s.Status.RunStatus, s.Generation, o.reason, o.message, seen.now)
		p.requeueAfter = wait
	}
	return p
}

// planRun decides how far a restore that has begun is.
func planRun(seen *observed) plan {
	s := seen.restore
	p := plan{status: s.Status, requeueAfter: lookAgain}
	store, path := sourceOf(seen)
	verdict := snapshotjob.Judge(seen.load, store)
	p.status.RunStatus = snapshotjob.Next(s.Status.RunStatus, s.Generation, verdict, seen.load.UID(), seen.now)
	p.load = snapshotjob.ActFor(p.status.RunStatus, seen.load, verdict)
	if p.load == snapshotjob.Create {
		switch o := obstacleOf(seen); {
		case o == nil:
		case o.passes && s.Status.StartTime != nil && until(s.Status.StartTime.Time, seen) > 0:
			p.status.RunStatus = snapshotjob.Hold(s.Status.RunStatus, s.Generation, o.reason, o.message, seen.now)
			p.load = snapshotjob.Leave
		default:
			p.refuse(seen, o)
		}
	}
	if o := verdict.Outcome; o != nil {
		p.status.Restored, p.status.Kept, p.status.Expired, p.status.Refused = o.Restored, o.Kept, o.Expired, o.Refused
		if o.Snapshot != nil {
			p.status.Snapshot = snapshotjob.SnapshotOf(o.Snapshot, path)
		}
	}
	if snapshotjob.HasEnded(p.status.RunStatus) {
		p.load, p.requeueAfter = snapshotjob.ActAfter(seen.load), lookSoon // for the Services
	}
	return p
}

// refuse ends a restore that cannot begin, or not in time.
func (p *plan) refuse(seen *observed, o *obstacle) {
	if o.passes {
		p.fail(seen, v1alpha1.ReasonDeadlineExceeded, "it could not begin within its deadline: "+o.message)
		return
	}
	p.fail(seen, o.reason, o.message)
}

// fail ends a restore.
func (p *plan) fail(seen *observed, reason, message string) {
	p.status.RunStatus = snapshotjob.End(p.status.RunStatus, seen.restore.Generation, v1alpha1.RunFailed, reason, message, seen.now)
	p.load, p.requeueAfter = snapshotjob.ActAfter(seen.load), 0
}

// until returns how long something may still be waited for.
func until(since time.Time, seen *observed) time.Duration {
	return since.Add(snapshotjob.Deadline(seen.restore.Spec.Deadline)).Sub(seen.now)
}

// event is one to record.
type event struct{ kind, reason, message string }

// eventOf returns what a person wants to hear of, from one status to the next, or nil.
func eventOf(was, next v1alpha1.MemcachedRestoreStatus) *event {
	if was.Phase == next.Phase {
		return nil
	}
	switch next.Phase {
	case v1alpha1.RunRunning:
		return &event{corev1.EventTypeNormal, v1alpha1.EventRestoreStarted, next.Message}
	case v1alpha1.RunComplete:
		return &event{corev1.EventTypeNormal, v1alpha1.EventRestoreComplete, fmt.Sprintf("%d items were restored; %d were there already, %d had expired, %d were refused by memcached",
			next.Restored, next.Kept, next.Expired, next.Refused)}
	case v1alpha1.RunFailed:
		return &event{corev1.EventTypeWarning, v1alpha1.EventRestoreFailed, next.Reason + ": " + next.Message}
	}
	return nil
}
