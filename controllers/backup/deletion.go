package backup

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// deletionPoll is how often a deletion is checked.
	deletionPoll = 5 * time.Second
	// deletionTimeout is how long the operator tries to create the Job that deletes, and how
	// long it waits for the backup's own Job to stop.
	deletionTimeout = transfer.DeleteDeadlineSeconds * time.Second
	// deletionGrace is how long after its deadline the Job that deletes may still exist, such as
	// a suspended one or one on a node that does not respond.
	deletionGrace = time.Minute
)

// hasFinalizer reports whether a backup stays until its snapshot is deleted.
func hasFinalizer(b *v1beta1.MemcachedBackup) bool {
	return controllerutil.ContainsFinalizer(b, v1beta1.FinalizerSnapshot)
}

// planDeletion plans a backup that is being deleted.
func planDeletion(obs *observation, rejection error) transfer.Plan {
	b, age := obs.backup, obs.Now.Sub(obs.backup.DeletionTimestamp.Time)
	state := transfer.Evaluate(obs.deletion, b.Spec.Store)
	switch {
	case !hasFinalizer(b): // the garbage collector deletes its Job, and the snapshot stays
		return transfer.Plan{Status: obs.LastStatus()}
	case b.Status.JobName == "" && b.Status.Snapshot != nil && b.Spec.DeletionPolicy == v1beta1.SnapshotDelete:
		// Another cluster may contain the backup that it is a copy of.
		return abandon(obs, "another object wrote it, of which this one was recreated")
	case b.Status.JobName == "": // nothing was written
		return release(obs)
	case b.Spec.DeletionPolicy != v1beta1.SnapshotDelete && state.Stage == transfer.Absent: // it has changed
		return release(obs)
	case obs.Job.IsActive() && age >= deletionTimeout:
		return abandon(obs, fmt.Sprintf("Job %s has not stopped", obs.Job.Name))
	case obs.Job.IsActive():
		p := wait(obs, fmt.Sprintf("waiting until Job %s has stopped", obs.Job.Name))
		p.Status, p.Actions.Job = transfer.WithStart(p.Status, transfer.Evaluate(obs.Job, b.Spec.Store)), obs.Job.Cleanup()
		return p
	case neverRan(obs): // nothing was written either
		return release(obs)
	case len(obs.activeRestores) > 0:
		reason := fmt.Sprintf("waiting until %s has read the snapshot", strings.Join(obs.activeRestores, ", "))
		p := wait(obs, reason)
		p.Events = []event.Event{event.Normal(v1beta1.EventDeletionBlocked, "%s", reason)}
		return p
	case obs.deletion.ExitedWithZero(): // that is all there is to know
		return release(obs, event.Normal(v1beta1.EventSnapshotDeleted, "deleted %s", location(b)))
	case state.Stage == transfer.Failed || state.Stage == transfer.Foreign:
		return abandon(obs, state.Reason+": "+state.Message)
	case state.Stage != transfer.Absent && obs.Now.Sub(obs.deletion.Job.CreationTimestamp.Time) >= deletionTimeout+deletionGrace:
		return abandon(obs, fmt.Sprintf("Job %s did not finish in time: %s", obs.deletion.Name, state.Message))
	case state.Stage != transfer.Absent:
		p := wait(obs, state.Message)
		p.Actions.EndPod = state.EndPod
		return p
	case obs.Options.Restrictions.StoreViolation(b.Spec.Store) != "": // a user can write the record of a backup that never ran
		return abandon(obs, obs.Options.Restrictions.StoreViolation(b.Spec.Store))
	case rejection == nil:
		return transfer.Plan{Status: obs.LastStatus(), Actions: transfer.Actions{Create: deletionJob(obs), RequeueAfter: deletionPoll}}
	case apiserver.IsTerminating(rejection) || age >= deletionTimeout:
		return abandon(obs, rejection.Error())
	}
	p := wait(obs, rejection.Error())
	p.Actions.RequeueAfter = apiserver.RejectionRecheck
	return p
}

// wait reports why the deletion waits.
func wait(obs *observation, reason string) transfer.Plan {
	return transfer.Plan{Status: transfer.WithDeletion(obs.LastStatus(), obs.Observation, reason), Actions: transfer.Actions{RequeueAfter: deletionPoll}}
}

// release lets the backup disappear.
func release(obs *observation, events ...event.Event) transfer.Plan {
	return transfer.Plan{Status: obs.LastStatus(), Events: events, Actions: transfer.Actions{Finalizer: transfer.RemoveFinalizer}}
}

// abandon lets the backup disappear, and reports what stays: the snapshot, or what its Job has not deleted yet, which can't be restored.
func abandon(obs *observation, reason string) transfer.Plan {
	what := "kept the snapshot in"
	if transfer.Evaluate(obs.deletion, obs.backup.Spec.Store).Started {
		what = "data of the snapshot may remain in"
	}
	return release(obs, event.Warning(v1beta1.EventSnapshotRetained, what+" %s, because it could not be deleted: %s", location(obs.backup), reason))
}

func location(b *v1beta1.MemcachedBackup) string {
	path := transfer.SnapshotPath(b)
	if s := b.Status.Snapshot; s != nil {
		path = s.Path
	}
	return transfer.Describe(b.Spec.Store, path)
}

// neverRan reports whether no container of the backup's Job has ever run: there was no Job,
// or the operator last saw that the Job can't start.
func neverRan(obs *observation) bool {
	s := obs.backup.Status
	return s.Progress == nil && !transfer.Evaluate(obs.Job, obs.backup.Spec.Store).Started &&
		(s.JobUID == "" && obs.Job.Job == nil || s.Reason() == v1beta1.ReasonJobCannotStart)
}

func deletionJob(obs *observation) *batchv1.Job {
	return obs.job(transfer.JobSpec{
		Prefix: transfer.Delete, Action: snapshotwire.ActionDelete, DeadlineSeconds: ptr.To[int32](transfer.DeleteDeadlineSeconds),
	})
}
