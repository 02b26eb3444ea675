package schedule

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// lookForPerson is how soon to try again what only a person can change.
const lookForPerson = 30 * time.Second

// apply makes the plan's writes, in its order, and none after one that failed. The
// status is last: a turn that it does not tell of is found by its backup's name.
func (r *Reconciler) apply(ctx context.Context, s *v1alpha1.MemcachedScheduledBackup, p plan) (ctrl.Result, error) {
	writer := snapshotjob.Writer{Client: r.Client, Live: r.Live}
	if p.create != nil {
		// A status from the cache may not know of the turn yet, and its backup be gone.
		if err := writer.Unchanged(ctx, s); err != nil {
			return snapshotjob.After(0, err)
		}
		if err := r.delete(ctx, p.deletes); err != nil {
			return ctrl.Result{}, err
		}
		switch err := r.Client.Create(ctx, p.create, client.FieldOwner(v1alpha1.ManagedByValue)); {
		case snapshotjob.NamespaceEnds(err):
			return ctrl.Result{}, nil
		case snapshotjob.Refused(err): // the turn is not over: it is tried again until it is too late
			p = plan{status: *s.Status.DeepCopy(), requeueAfter: lookForPerson}
			p.tell(s, metav1.ConditionTrue, v1alpha1.ReasonRetrying, fmt.Sprintf("backup of the turn cannot be made: %v", err), r.Clock.Now())
		case err != nil && !apierrors.IsAlreadyExists(err):
			return ctrl.Result{}, fmt.Errorf("making backup %s: %w", p.create.Name, err)
		}
	}
	if err := r.delete(ctx, p.prune); err != nil {
		return ctrl.Result{}, err
	}
	if !equality.Semantic.DeepEqual(s.Status, p.status) {
		s.Status = p.status
		if err := writer.Status(ctx, s); err != nil {
			return snapshotjob.After(0, err)
		}
	}
	for _, e := range p.events {
		r.Recorder.Eventf(s, nil, e.kind, e.reason, "Reconcile", "%s", e.message)
	}
	return snapshotjob.After(p.requeueAfter, nil)
}

// delete deletes backups, which may take a while for their snapshots.
func (r *Reconciler) delete(ctx context.Context, backups []v1alpha1.MemcachedBackup) error {
	for i := range backups {
		b := &backups[i]
		if err := r.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting backup %s: %w", b.Name, err)
		}
	}
	return nil
}
