package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
)

// finishedJobTTL is how long, in seconds, a Job and its log stay after the status
// contains its result.
const finishedJobTTL = 600

// BatchSize bounds how many objects a reconcile creates or deletes. The others follow in the next one, behind the requests
// for other transfers.
const BatchSize = 50

// apply makes the writes of a plan in order, and none after one that failed. It reports
// whether the phase or the finalizers changed, after which the rest is planned again. It returns apiserver.ErrStale
// if a later reconcile creates the rest of many objects.
func (e *Engine) apply(ctx context.Context, obs Observation, p Plan) (changed bool, err error) {
	if changed, err = e.applyObject(ctx, obs, p); err != nil || changed {
		return changed, err
	}
	if p.Create != nil {
		if err := e.create(ctx, obs, p.Create); err != nil {
			return false, err
		}
	}
	return false, e.applyJob(ctx, p.Job, obs.Job.Job)
}

// applyObject writes the finalizers or the status of the object. Then it logs the
// decision and records the events, also on the Memcached.
func (e *Engine) applyObject(ctx context.Context, obs Observation, p Plan) (changed bool, err error) {
	if equality.Semantic.DeepEqual(obs.Object, p.Object) {
		return false, nil
	}
	t, was := transferOf(p.Object), transferOf(obs.Object).status
	finalizers := p.Object.GetFinalizers()
	changed = was.Phase != t.status.Phase || !slices.Equal(obs.Object.GetFinalizers(), finalizers)
	if slices.Equal(obs.Object.GetFinalizers(), finalizers) {
		err = apiserver.WriteStatus(ctx, e.Client, obs.Object, p.Object)
	} else {
		err = apiserver.WriteMetadata(ctx, e.Client, obs.Object, p.Object)
	}
	if err != nil {
		return false, err
	}
	if changed || was.Reason != t.status.Reason || len(p.Events) > 0 {
		log.FromContext(ctx).Info("Updated the "+string(t.prefix), "phase", t.status.Phase, "reason", t.status.Reason,
			"message", t.status.Message, "finalizers", finalizers)
	}
	for _, event := range p.Events {
		e.Recorder.Eventf(p.Object, nil, event.Type, event.Reason, "Reconcile", "%s", event.Message)
		if obs.Memcached != nil {
			e.Recorder.Eventf(obs.Memcached, p.Object, event.Type, event.Reason, "Reconcile",
				"%s %s: %s", t.prefix, p.Object.GetName(), event.Message)
		}
	}
	return changed, nil
}

// create creates objects, unless the owner has changed since it was read: a status from
// the cache may be older than the one that says how the transfer finished.
func (e *Engine) create(ctx context.Context, obs Observation, build func() ([]client.Object, error)) error {
	objects, err := build()
	if err != nil {
		return err
	}
	if err := apiserver.EnsureFresh(ctx, e.APIReader, obs.Object); err != nil {
		return err
	}
	for i, o := range objects {
		if i == BatchSize {
			return apiserver.ErrStale
		}
		if err := apiserver.Create(ctx, e.Client, o); err != nil {
			return err
		}
		if err := e.ensureOwned(ctx, obs.Object, o); err != nil {
			return err
		}
		job, ok := o.(*batchv1.Job)
		if !ok || job.UID == "" || !obs.hasNetworkPolicy() { // without a UID, it existed already
			continue
		}
		// The Job needs no policy to do its work.
		if err := apiserver.Create(ctx, e.Client, e.Options.networkPolicy(job)); err != nil {
			log.FromContext(ctx).Error(err, "The Job has no NetworkPolicy", "job", job.Name)
		}
	}
	return nil
}

// ensureOwned returns an error that IsRejected reports if another object had the name of
// one that should have been created. A Job is checked when it is observed.
func (e *Engine) ensureOwned(ctx context.Context, owner, o client.Object) error {
	if o.GetUID() != "" { // it was created
		return nil
	}
	if _, isJob := o.(*batchv1.Job); isJob {
		return nil
	}
	found, err := apiserver.Find(ctx, client.ObjectKeyFromObject(o), o, e.APIReader)
	switch {
	case err != nil:
		return err
	case found && !metav1.IsControlledBy(o, owner):
		return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(apiserver.KindOf(o)) + "s"}, o.GetName(),
			errors.New("it already exists and belongs to another object. Delete it"))
	}
	return nil
}

func (e *Engine) applyJob(ctx context.Context, action Action, job *batchv1.Job) error {
	switch action {
	case DeleteJob:
		log.FromContext(ctx).Info("Deleting the Job", "job", job.Name)
		return apiserver.Delete(ctx, e.Client, job, client.PropagationPolicy(metav1.DeletePropagationForeground))
	case ExpireJob:
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"ttlSecondsAfterFinished":%d}}`, job.UID, finishedJobTTL)
		err := e.Client.Patch(ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagedByValue))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("letting Job %s expire: %w", job.Name, err)
		}
	}
	return nil
}
