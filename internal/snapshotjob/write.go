package snapshotjob

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// stays is how long, in seconds, a Job and its log stay after its result stands in
// the status.
const stays = 600

// Act is what is to be done about a Job.
type Act int

// The acts.
const (
	// Leave it as it is.
	Leave Act = iota
	// Create it.
	Create
	// Remove it; it is gone only when its pod is.
	Remove
	// Expire has it go in a while.
	Expire
)

// ActFor returns what is to be done about the Job of something that runs once, once
// this status stands.
func ActFor(s v1alpha1.RunStatus, seen Observed, v Verdict) Act {
	switch {
	case HasEnded(s):
		return ActAfter(seen)
	case s.Phase != v1alpha1.RunRunning:
		return Leave
	case v.Stage == Absent && s.JobUID == "":
		return Create
	case v.Stage == Stuck && seen.Now.Sub(v.Since) >= StuckBound:
		return Remove
	default:
		return Leave
	}
}

// ActAfter returns what is to be done about a Job that is not needed any more.
func ActAfter(seen Observed) Act {
	switch job := seen.Job; {
	case job == nil || job.DeletionTimestamp != nil:
		return Leave
	case !isFinished(job):
		return Remove
	case job.Spec.TTLSecondsAfterFinished == nil:
		return Expire
	default:
		return Leave
	}
}

// IsAtWork says whether there is a Job whose pod may still write.
func (s Observed) IsAtWork() bool { return s.Job != nil && !isFinished(s.Job) }

// UID returns that of the Job, or nothing.
func (s Observed) UID() string {
	if s.Job == nil {
		return ""
	}
	return string(s.Job.UID)
}

// Writer does what is to be done about Jobs.
type Writer struct {
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
}

// Outrun is the error of a Job that was not made as its owner has changed since it
// was read.
type Outrun struct{ Job string }

func (o *Outrun) Error() string {
	return fmt.Sprintf("the owner of Job %s has changed since it was read", o.Job)
}

// Create makes a Job, unless the owner has changed since it was read: a status that
// was read from the cache may be older than the one that says how it ended.
func (w Writer) Create(ctx context.Context, owner client.Object, job *batchv1.Job) error {
	if err := w.Unchanged(ctx, owner, job.Name); err != nil {
		return err
	}
	if err := w.Client.Create(ctx, job, client.FieldOwner(v1alpha1.ManagedByValue)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making Job %s: %w", job.Name, err)
	}
	return nil // one that exists is looked at in the next reconcile
}

// Unchanged returns an Outrun unless the owner is as it was read.
func (w Writer) Unchanged(ctx context.Context, owner client.Object, job string) error {
	fresh := owner.DeepCopyObject().(client.Object)
	switch err := w.Live.Get(ctx, client.ObjectKeyFromObject(owner), fresh); {
	case apierrors.IsNotFound(err):
		return &Outrun{job}
	case err != nil:
		return fmt.Errorf("looking up the owner of Job %s: %w", job, err)
	case fresh.GetUID() != owner.GetUID() || fresh.GetResourceVersion() != owner.GetResourceVersion():
		return &Outrun{job}
	}
	return nil
}

// Finish removes a Job or has it expire.
func (w Writer) Finish(ctx context.Context, act Act, job *batchv1.Job) error {
	var err error
	switch act {
	case Remove:
		err = w.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	case Expire:
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"ttlSecondsAfterFinished":%d}}`, job.UID, stays)
		err = w.Client.Patch(ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagedByValue))
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("ending Job %s: %w", job.Name, err)
	}
	return nil
}

// NamespaceEnds says whether a write was refused because the namespace is being
// deleted.
func NamespaceEnds(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// Refused says whether a write was refused for what only a person can change, such
// as a quota.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}
