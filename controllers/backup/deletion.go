package backup

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
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
func hasFinalizer(b *v1alpha1.MemcachedBackup) bool {
	return controllerutil.ContainsFinalizer(b, v1alpha1.FinalizerSnapshot)
}

func planDeletion(obs *observation) transfer.Plan {
	b, p := obs.backup, obs.Plan()
	p.RequeueAfter = deletionPoll
	wait := func(reason string) { p.SetMessage("being deleted: " + reason) }
	release := func(events ...event.Event) {
		controllerutil.RemoveFinalizer(p.Object, v1alpha1.FinalizerSnapshot)
		p.Events = events
	}
	location := transfer.Describe(b.Spec.Store, transfer.SnapshotPath(b))
	abandon := func(reason string) {
		release(event.Warning(v1alpha1.EventSnapshotRetained, "kept the snapshot in %s, because it could not be deleted: %s", location, reason))
	}
	state := transfer.Evaluate(obs.deletion, b.Spec.Store)
	age := obs.Now.Sub(b.DeletionTimestamp.Time)
	switch {
	case !hasFinalizer(b): // the garbage collector deletes its Job, and the snapshot stays
		p.RequeueAfter = 0
	case b.Status.JobName == "": // nothing was written
		release()
	case obs.Job.IsActive() && age >= deletionTimeout:
		abandon(fmt.Sprintf("Job %s has not stopped", obs.Job.Name))
	case obs.Job.IsActive():
		p.RecordStart(transfer.Evaluate(obs.Job, b.Spec.Store))
		wait(fmt.Sprintf("waiting until Job %s has stopped", obs.Job.Name))
		p.Job = obs.Job.Cleanup()
	case neverRan(obs): // nothing was written either
		release()
	case len(obs.activeRestores) > 0:
		wait(fmt.Sprintf("waiting until %s has read the snapshot", strings.Join(obs.activeRestores, ", ")))
		p.Events = []event.Event{event.Normal(v1alpha1.EventDeletionBlocked, "%s", p.Status().Message)}
	case state.Stage == transfer.Succeeded:
		release(event.Normal(v1alpha1.EventSnapshotDeleted, "deleted %s", location))
	case state.Stage == transfer.Failed || state.Stage == transfer.Foreign:
		abandon(state.Reason + ": " + state.Message)
	case state.Stage != transfer.Absent && obs.Now.Sub(obs.deletion.Job.CreationTimestamp.Time) >= deletionTimeout+deletionGrace:
		abandon(fmt.Sprintf("Job %s did not finish in time: %s", obs.deletion.Name, state.Message))
	case state.Stage != transfer.Absent:
		wait(state.Message)
	case obs.Rejection == nil:
		p.Create = obs.deletionJob
	case apiserver.IsTerminating(obs.Rejection) || age >= deletionTimeout:
		abandon(obs.Rejection.Error())
	default:
		wait(obs.Rejection.Error())
		p.RequeueAfter = apiserver.RejectionRecheck
	}
	return p
}

// neverRan reports whether no container of the backup's Job has ever run: there was no Job,
// or the last that the operator saw of it is that it can't start.
func neverRan(obs *observation) bool {
	s := obs.backup.Status
	return s.Progress == nil && !transfer.Evaluate(obs.Job, obs.backup.Spec.Store).Started &&
		(s.JobUID == "" && obs.Job.Job == nil || s.Reason == v1alpha1.ReasonJobCannotStart)
}

func (obs *observation) deletionJob() ([]client.Object, error) {
	return obs.job(transfer.JobSpec{
		Prefix: transfer.Delete, Action: snapshotwire.ActionDelete, DeadlineSeconds: ptr.To[int32](transfer.DeleteDeadlineSeconds),
	})
}
