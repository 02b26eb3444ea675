package backup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// lookForPerson is how soon to try again what only a person can change.
const lookForPerson = 30 * time.Second

func (r *Reconciler) writer() snapshotjob.Writer {
	return snapshotjob.Writer{Client: r.Client, Live: r.Live}
}

// apply makes the plan's writes, in its order, and none after one that failed.
func (r *Reconciler) apply(ctx context.Context, seen *observed, p plan) (ctrl.Result, error) {
	if p.hold {
		if err := r.patchFinalizer(ctx, seen.backup, controllerutil.AddFinalizer); err != nil {
			return snapshotjob.After(0, err)
		}
		p = makePlan(seen)
	}
	told := !equality.Semantic.DeepEqual(seen.backup.Status, p.status)
	if err := r.writeStatus(ctx, seen, p.status); err != nil {
		return snapshotjob.After(0, err)
	}
	if told {
		r.record(seen, p.noted)
	}
	if err := r.applySave(ctx, seen, &p); err != nil {
		return snapshotjob.After(0, err)
	}
	if err := r.applyErase(ctx, seen, &p); err != nil {
		return snapshotjob.After(0, err)
	}
	if p.release {
		if err := r.patchFinalizer(ctx, seen.backup, controllerutil.RemoveFinalizer); err != nil {
			return snapshotjob.After(0, err)
		}
		r.record(seen, p.released)
	}
	return snapshotjob.After(p.requeueAfter, nil)
}

// writeStatus writes the status if it changed, and only if the backup did not, and
// once it stands the event that tells of the change.
func (r *Reconciler) writeStatus(ctx context.Context, seen *observed, next v1alpha1.MemcachedBackupStatus) error {
	b := seen.backup
	if equality.Semantic.DeepEqual(b.Status, next) {
		return nil
	}
	was := b.Status
	b.Status = next
	if err := r.writer().Status(ctx, b); err != nil {
		return err
	}
	r.record(seen, eventOf(was, next))
	return nil
}

// applySave does what is to be done about the Job that copies. When it may not be
// made, the status tells why.
func (r *Reconciler) applySave(ctx context.Context, seen *observed, p *plan) error {
	if p.save != snapshotjob.Create {
		return r.writer().Finish(ctx, p.save, seen.save.Job)
	}
	job, err := r.Options.Job(runOf(seen))
	if err != nil {
		return err
	}
	switch err := r.writer().Create(ctx, seen.backup, job); {
	case snapshotjob.NamespaceEnds(err): // and the backup with it
		p.requeueAfter = 0
		return nil
	case snapshotjob.Refused(err):
		p.requeueAfter = lookForPerson
		p.status.RunStatus = snapshotjob.Hold(p.status.RunStatus, seen.backup.Generation, v1alpha1.ReasonJobCannotStart, err.Error(), seen.now)
		return r.writeStatus(ctx, seen, p.status)
	default:
		return err
	}
}

// applyErase does what is to be done about the Job that deletes the snapshot. When
// it may not be made for good, the backup goes without it.
func (r *Reconciler) applyErase(ctx context.Context, seen *observed, p *plan) error {
	if p.erase != snapshotjob.Create {
		return nil
	}
	job, err := r.Options.Job(eraseOf(seen))
	if err != nil {
		return err
	}
	err = r.writer().Create(ctx, seen.backup, job)
	late := seen.now.Sub(seen.backup.DeletionTimestamp.Time) >= snapshotjob.EraseDeadline
	switch {
	case snapshotjob.NamespaceEnds(err), snapshotjob.Refused(err) && late:
		p.giveUp(seen.backup, err.Error())
		return nil
	case snapshotjob.Refused(err):
		p.requeueAfter = lookForPerson
		p.note("%s", err.Error())
		return r.writeStatus(ctx, seen, p.status)
	default:
		return err
	}
}

// patchFinalizer gives or takes the finalizer, if the backup did not change.
func (r *Reconciler) patchFinalizer(ctx context.Context, b *v1alpha1.MemcachedBackup, change func(client.Object, string) bool) error {
	before := b.DeepCopy()
	if !change(b, v1alpha1.FinalizerSnapshot) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	switch err := r.Client.Patch(ctx, b, patch, client.FieldOwner(v1alpha1.ManagedByValue)); {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return snapshotjob.ErrOutrun
	case err != nil:
		return fmt.Errorf("writing the finalizer: %w", err)
	}
	return nil
}

// record records an event, if there is one, on the backup and on its Memcached.
func (r *Reconciler) record(seen *observed, e *event) {
	if e == nil {
		return
	}
	r.Recorder.Eventf(seen.backup, nil, e.kind, e.reason, "Reconcile", "%s", e.message)
	if seen.memcached != nil {
		r.Recorder.Eventf(seen.memcached, seen.backup, e.kind, e.reason, "Reconcile", "backup %s: %s", seen.backup.Name, e.message)
	}
}
