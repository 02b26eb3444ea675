package schedule

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
)

// apply makes the writes of a plan in order, and none after one that failed. The status
// is last: the name of a backup shows a run that the status does not contain yet.
func (r *Reconciler) apply(ctx context.Context, s *v1alpha1.MemcachedScheduledBackup, p plan) (ctrl.Result, error) {
	if p.create != nil || len(p.replace) > 0 {
		// A status from the cache may not contain the run yet, and its backup may have been deleted.
		if err := apiserver.EnsureFresh(ctx, r.APIReader, s); err != nil {
			return apiserver.Result(0, err)
		}
	}
	for i := range p.replace {
		log.FromContext(ctx).Info("Replacing a backup that is still running", "backup", p.replace[i].Name)
		if err := apiserver.Delete(ctx, r.Client, &p.replace[i]); err != nil {
			return ctrl.Result{}, err
		}
	}
	if p.create != nil {
		switch err := apiserver.Create(ctx, r.Client, p.create); {
		case apiserver.IsTerminating(err):
			return ctrl.Result{}, nil
		case apiserver.IsRejected(err):
			p = planRetry(s, err, r.Clock.Now())
		case err != nil:
			return ctrl.Result{}, err
		}
	}
	for i := range p.prune {
		if err := apiserver.Delete(ctx, r.Client, &p.prune[i]); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.writeStatus(ctx, s, p); err != nil {
		return apiserver.Result(0, err)
	}
	for _, e := range p.events {
		r.Recorder.Eventf(s, nil, e.Type, e.Reason, "Reconcile", "%s", e.Message)
		log.FromContext(ctx).Info(e.Message, "reason", e.Reason)
	}
	return apiserver.Result(p.requeueAfter, nil)
}

// writeStatus writes the status if it changed, unless the schedule has changed since it
// was read.
func (r *Reconciler) writeStatus(ctx context.Context, s *v1alpha1.MemcachedScheduledBackup, p plan) error {
	if equality.Semantic.DeepEqual(s.Status, p.status) {
		return nil
	}
	next := s.DeepCopy()
	next.Status = p.status
	if err := apiserver.WriteStatus(ctx, r.Client, s, next); err != nil {
		return err
	}
	was := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionScheduled)
	is := meta.FindStatusCondition(p.status.Conditions, v1alpha1.ConditionScheduled)
	if is != nil && len(p.events) == 0 && (was == nil || was.Reason != is.Reason) {
		log.FromContext(ctx).Info("Updated the schedule", "reason", is.Reason, "message", is.Message)
	}
	return nil
}
