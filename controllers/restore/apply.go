package restore

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

const (
	// lookSoon is how soon to go on with what comes after a status.
	lookSoon = 100 * time.Millisecond
	// lookForPerson is how soon to try again what only a person can change.
	lookForPerson = 30 * time.Second
)

func (r *Reconciler) writer() snapshotjob.Writer {
	return snapshotjob.Writer{Client: r.Client, Live: r.Live}
}

// apply makes the plan's writes, in its order, and none after one that failed.
func (r *Reconciler) apply(ctx context.Context, seen *observed, p plan) (ctrl.Result, error) {
	if err := r.writeStatus(ctx, seen, p.status); err != nil {
		return snapshotjob.After(0, err)
	}
	if err := r.applyLoad(ctx, seen, &p); err != nil {
		return snapshotjob.After(0, err)
	}
	for i := range p.close {
		service := &p.close[i]
		if err := r.Client.Delete(ctx, service, client.Preconditions{UID: &service.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return ctrl.Result{}, fmt.Errorf("deleting Service %s: %w", service.Name, err)
		}
	}
	return snapshotjob.After(p.requeueAfter, nil)
}

// writeStatus writes the status if it changed, and only if the restore did not, and
// once it stands the event that tells of the change.
func (r *Reconciler) writeStatus(ctx context.Context, seen *observed, next v1alpha1.MemcachedRestoreStatus) error {
	restore := seen.restore
	if equality.Semantic.DeepEqual(restore.Status, next) {
		return nil
	}
	was := restore.Status
	restore.Status = next
	if err := r.writer().Status(ctx, restore); err != nil {
		return err
	}
	if e := eventOf(was, next); e != nil {
		r.Recorder.Eventf(restore, nil, e.kind, e.reason, "Reconcile", "%s", e.message)
		if seen.memcached != nil {
			r.Recorder.Eventf(seen.memcached, restore, e.kind, e.reason, "Reconcile", "restore %s: %s", restore.Name, e.message)
		}
	}
	return nil
}

// applyLoad does what is to be done about the Job. When it may not be made, the
// status tells why.
func (r *Reconciler) applyLoad(ctx context.Context, seen *observed, p *plan) error {
	if p.load != snapshotjob.Create {
		return r.writer().Finish(ctx, p.load, seen.load.Job)
	}
	switch err := r.begin(ctx, seen); {
	case snapshotjob.NamespaceEnds(err): // and the restore with it
		p.requeueAfter = 0
		return nil
	case snapshotjob.Refused(err):
		p.requeueAfter = lookForPerson
		p.status.RunStatus = snapshotjob.Hold(p.status.RunStatus, seen.restore.Generation, v1alpha1.ReasonJobCannotStart, err.Error(), seen.now)
		return r.writeStatus(ctx, seen, p.status)
	default:
		return err
	}
}

// begin makes the Services that the Job needs, and the Job.
func (r *Reconciler) begin(ctx context.Context, seen *observed) error {
	if err := r.writer().Unchanged(ctx, seen.restore); err != nil {
		return err
	}
	services, err := servicesFor(seen)
	if err != nil {
		return err
	}
	for i := range services {
		if err := r.Client.Create(ctx, &services[i], client.FieldOwner(v1alpha1.ManagedByValue)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making Service %s: %w", services[i].Name, err)
		}
	}
	job, err := r.Options.Job(runOf(seen))
	if err != nil {
		return err
	}
	return r.writer().Create(ctx, seen.restore, job)
}
