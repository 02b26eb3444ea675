package backup

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// plan is what to write, in this order.
type plan struct {
	// hold gives the backup its finalizer, before it has anything to delete.
	hold bool
	// status to tell, and an event to record if it is news.
	status v1alpha1.MemcachedBackupStatus
	noted  *event
	// save and erase are what to do about the two Jobs, after the status stands.
	save, erase snapshotjob.Act
	// release takes the finalizer away, and an event tells what came of the snapshot.
	release  bool
	released *event
	// requeueAfter is when to look again, if nothing changes before; 0 is never.
	requeueAfter time.Duration
}

// event is one to record.
type event struct{ kind, reason, message string }

// makePlan decides what to do for a backup.
func makePlan(seen *observed) plan {
	b := seen.backup
	switch {
	case b.DeletionTimestamp != nil:
		return planDeletion(seen)
	case snapshotjob.HasEnded(b.Status.RunStatus):
		return plan{status: b.Status, save: snapshotjob.ActAfter(seen.save)}
	case b.Status.Phase == v1alpha1.RunRunning:
		return planRun(seen)
	default:
		return planStart(seen)
	}
}

// obstacle is what keeps a backup from beginning. It is for good, or it is waited
// for.
type obstacle struct {
	reason, message string
	passes          bool
}

// obstacleOf returns what keeps a backup from beginning, or nil.
func obstacleOf(seen *observed) *obstacle {
	m, name := seen.memcached, seen.backup.Spec.Memcached.Name
	switch {
	case m == nil:
		return &obstacle{reason: v1alpha1.ReasonMemcachedNotFound,
			message: fmt.Sprintf("there is no Memcached %s in this namespace: make a backup of one that is there", name)}
	case m.Spec.Size != nil && *m.Spec.Size == 0:
		return &obstacle{reason: v1alpha1.ReasonNothingRuns,
			message: fmt.Sprintf("Memcached %s has no shard to copy: make another backup once its size is 1 or more", name)}
	case m.DeletionTimestamp != nil && !snapshotjob.HasServers(m):
		return &obstacle{reason: v1alpha1.ReasonMemcachedDeleting,
			message: fmt.Sprintf("Memcached %s is being deleted, and not all of its shards can be reached any more: with spec.deletionPolicy Backup the operator takes a backup before that", name)}
	case m.Status.Bootstrap != nil && m.Status.Bootstrap.Phase == v1alpha1.RunRunning:
		return &obstacle{passes: true, reason: v1alpha1.ReasonBootstrapping,
			message: fmt.Sprintf("Memcached %s is being filled from a snapshot: the backup begins when its shards serve", name)}
	case !snapshotjob.HasServers(m):
		return &obstacle{passes: true, reason: v1alpha1.ReasonShardsStarting,
			message: fmt.Sprintf("Memcached %s does not name the addresses of all of its shards in status.servers yet", name)}
	}
	return nil
}

// planStart decides whether a backup begins.
func planStart(seen *observed) plan {
	b := seen.backup
	p := plan{status: b.Status}
	wait := until(b.CreationTimestamp.Time, seen)
	switch o := obstacleOf(seen); {
	case o == nil && b.Spec.DeletionPolicy == v1alpha1.SnapshotDelete && !isHeld(b):
		p.hold = true
	case o == nil:
		message := fmt.Sprintf("Job %s is to copy %d shards of Memcached %s", seen.save.Name, len(seen.memcached.Status.Servers), seen.memcached.Name)
		p.status.RunStatus = snapshotjob.Begin(b.Status.RunStatus, b.Generation, seen.save.Name, message, seen.now)
		p.save = snapshotjob.Create
		p.requeueAfter = lookAgain
	case !o.passes || wait <= 0:
		p.refuse(seen, o)
	default:
		p.status.RunStatus = snapshotjob.Wait(b.Status.RunStatus, b.Generation, o.reason, o.message, seen.now)
		p.requeueAfter = wait
	}
	return p
}

// planRun decides how far a backup that has begun is.
func planRun(seen *observed) plan {
	b := seen.backup
	p := plan{status: b.Status, requeueAfter: lookAgain}
	verdict := snapshotjob.Judge(seen.save, b.Spec.Store)
	p.status.RunStatus = snapshotjob.Next(b.Status.RunStatus, b.Generation, verdict, seen.save.UID(), seen.now)
	p.save = snapshotjob.ActFor(p.status.RunStatus, seen.save, verdict)
	if p.save == snapshotjob.Create {
		// The operator was away since it began, and much may have changed.
		switch o := obstacleOf(seen); {
		case o == nil:
		case o.passes && b.Status.StartTime != nil && until(b.Status.StartTime.Time, seen) > 0:
			p.status.RunStatus = snapshotjob.Hold(b.Status.RunStatus, b.Generation, o.reason, o.message, seen.now)
			p.save = snapshotjob.Leave
		default:
			p.refuse(seen, o)
		}
	}
	if p.status.Phase == v1alpha1.RunComplete {
		if p.status.Snapshot = snapshotjob.SnapshotOf(verdict.Outcome.Snapshot, snapshotjob.SnapshotPath(b)); p.status.Snapshot == nil {
			p.fail(seen, v1alpha1.ReasonJobFailed, fmt.Sprintf("Job %s did not say what it wrote: make another backup", seen.save.Name))
		}
	}
	if snapshotjob.HasEnded(p.status.RunStatus) {
		p.save, p.requeueAfter = snapshotjob.ActAfter(seen.save), 0
	}
	return p
}

// refuse ends a backup that cannot begin, or not in time.
func (p *plan) refuse(seen *observed, o *obstacle) {
	if o.passes {
		p.fail(seen, v1alpha1.ReasonDeadlineExceeded, "it could not begin within its deadline: "+o.message)
		return
	}
	p.fail(seen, o.reason, o.message)
}

// fail ends a backup.
func (p *plan) fail(seen *observed, reason, message string) {
	p.status.RunStatus = snapshotjob.End(p.status.RunStatus, seen.backup.Generation, v1alpha1.RunFailed, reason, message, seen.now)
	p.save, p.requeueAfter = snapshotjob.ActAfter(seen.save), 0
}

// until returns how long something may still be waited for.
func until(since time.Time, seen *observed) time.Duration {
	return since.Add(snapshotjob.Deadline(seen.backup.Spec.Deadline)).Sub(seen.now)
}

// runOf returns what the Job of a backup is made of.
func runOf(seen *observed) snapshotjob.Run {
	b, m := seen.backup, seen.memcached
	items, bytes := snapshotjob.Limits(b.Spec.RateLimit)
	return snapshotjob.Run{
		Prefix: snapshotjob.Backup, Owner: b, Kind: kind,
		Store: b.Spec.Store, Action: snapshotapi.ActionSave, Deadline: b.Spec.Deadline, PullSecrets: m.Spec.ImagePullSecrets,
		Task: snapshotapi.Task{
			Path:           snapshotjob.SnapshotPath(b),
			Memcached:      snapshotapi.Memcached{Namespace: m.Namespace, Name: m.Name, UID: string(m.UID), Version: m.Status.Version},
			Servers:        m.Status.Servers,
			ItemsPerSecond: items, BytesPerSecond: bytes,
		},
	}
}

// eventOf returns what a person wants to hear of, from one status to the next, or nil.
func eventOf(was, next v1alpha1.MemcachedBackupStatus) *event {
	if was.Phase == next.Phase {
		return nil
	}
	switch next.Phase {
	case v1alpha1.RunRunning:
		return &event{corev1.EventTypeNormal, v1alpha1.EventBackupStarted, next.Message}
	case v1alpha1.RunComplete:
		return &event{corev1.EventTypeNormal, v1alpha1.EventBackupComplete, fmt.Sprintf("%d items of %d shards are in %s", next.Snapshot.Items, next.Snapshot.Shards, next.Snapshot.Path)}
	case v1alpha1.RunFailed:
		return &event{corev1.EventTypeWarning, v1alpha1.EventBackupFailed, next.Reason + ": " + next.Message}
	}
	return nil
}
