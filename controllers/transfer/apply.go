package transfer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/fair"
)

// finishedJobTTL is how long, in seconds, a Job and its log stay after the status
// contains its result.
const finishedJobTTL = 600

// ErrStale says that an object has changed since it was read, so that nothing that was
// decided about it was written.
var ErrStale = errors.New("the object has changed since it was read")

// Event is an event to record.
type Event struct{ Type, Reason, Message string }

// apply makes the writes of a plan in order, and none after one that failed. It reports
// whether the phase or the finalizers changed, after which the rest is planned again. It returns ErrStale
// if a later reconcile creates or deletes the rest of many objects.
func (e *Engine) apply(ctx context.Context, obs Observation, p Plan) (changed bool, err error) {
	if changed, err = e.applyObject(ctx, obs, p); err != nil || changed {
		return changed, err
	}
	if p.Create != nil {
		if err := e.create(ctx, obs, p.Create); err != nil {
			return false, err
		}
	}
	if err := e.applyJob(ctx, p.Job, obs.Job.Job); err != nil {
		return false, err
	}
	for i, o := range p.Delete {
		if i == fair.BatchSize {
			return false, ErrStale
		}
		if err := DeleteObject(ctx, e.Client, o); err != nil {
			return false, err
		}
	}
	return false, nil
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
	if err := Write(ctx, e.Client, obs.Object, p.Object); err != nil {
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
	if err := EnsureFresh(ctx, e.APIReader, obs.Object); err != nil {
		return err
	}
	for i, o := range objects {
		if i == fair.BatchSize {
			return ErrStale
		}
		if err := CreateObject(ctx, e.Client, o); err != nil {
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
		if err := CreateObject(ctx, e.Client, e.Options.networkPolicy(job)); err != nil {
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
	found, err := Find(ctx, client.ObjectKeyFromObject(o), o, e.APIReader)
	switch {
	case err != nil:
		return err
	case found && !metav1.IsControlledBy(o, owner):
		return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kindName(o)) + "s"}, o.GetName(),
			errors.New("it already exists and belongs to another object. Delete it"))
	}
	return nil
}

func (e *Engine) applyJob(ctx context.Context, action Action, job *batchv1.Job) error {
	switch action {
	case DeleteJob:
		log.FromContext(ctx).Info("Deleting the Job", "job", job.Name)
		return DeleteObject(ctx, e.Client, job, client.PropagationPolicy(metav1.DeletePropagationForeground))
	case ExpireJob:
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"ttlSecondsAfterFinished":%d}}`, job.UID, finishedJobTTL)
		err := e.Client.Patch(ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagedByValue))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("letting Job %s expire: %w", job.Name, err)
		}
	}
	return nil
}

// Write writes how an object's finalizers, or else its status, differ from when it was
// read. It returns ErrStale if the object has changed since.
func Write(ctx context.Context, c client.Client, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	var err error
	if slices.Equal(before.GetFinalizers(), after.GetFinalizers()) {
		err = c.Status().Patch(ctx, after, patch, client.FieldOwner(v1alpha1.ManagedByValue))
	} else {
		err = c.Patch(ctx, after, patch, client.FieldOwner(v1alpha1.ManagedByValue))
	}
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return ErrStale
	case err != nil:
		return fmt.Errorf("writing %s %s: %w", kindName(after), after.GetName(), err)
	}
	return nil
}

// EnsureFresh returns ErrStale unless an object is still as it was read.
func EnsureFresh(ctx context.Context, reader client.Reader, o client.Object) error {
	fresh := o.DeepCopyObject().(client.Object)
	found, err := Find(ctx, client.ObjectKeyFromObject(o), fresh, reader)
	switch {
	case err != nil:
		return err
	case !found || fresh.GetUID() != o.GetUID() || fresh.GetResourceVersion() != o.GetResourceVersion():
		return ErrStale
	}
	return nil
}

// CreateObject creates an object, unless it exists: then the next reconcile observes it.
func CreateObject(ctx context.Context, c client.Client, o client.Object) error {
	switch err := c.Create(ctx, o, client.FieldOwner(v1alpha1.ManagedByValue)); {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("creating %s %s: %w", kindName(o), o.GetName(), err)
	}
	log.FromContext(ctx).Info("Created "+kindName(o), "object", o.GetName())
	return nil
}

// DeleteObject deletes an object, but none that took its name.
func DeleteObject(ctx context.Context, c client.Client, o client.Object, options ...client.DeleteOption) error {
	uid := o.GetUID()
	err := c.Delete(ctx, o, append(options, client.Preconditions{UID: &uid})...)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("deleting %s %s: %w", kindName(o), o.GetName(), err)
	}
	return nil
}

func kindName(o client.Object) string { return reflect.TypeOf(o).Elem().Name() }

// IsNamespaceTerminating reports whether a write was rejected because the namespace is
// being deleted.
func IsNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// IsRejected reports whether a write was rejected for a reason that requires a manual
// change, such as a quota.
func IsRejected(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}
