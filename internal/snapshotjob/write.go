package snapshotjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
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
	case v.Stage == Stuck && v.NoPod && s.Progress != nil:
		return Leave // it has copied before, and its deadline bounds it
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

// ErrOutrun says that an object has changed since it was read, so that what was
// decided about it was not written.
var ErrOutrun = errors.New("the object has changed since it was read")

// lookAtOnce is how soon to look again at what has changed meanwhile.
const lookAtOnce = 100 * time.Millisecond

// After returns when to look again. What was outrun is no error.
func After(d time.Duration, err error) (ctrl.Result, error) {
	switch {
	case errors.Is(err, ErrOutrun):
		return ctrl.Result{RequeueAfter: lookAtOnce}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: d}, nil
}

// Status writes the status of an object, unless the object has changed since it was
// read.
func (w Writer) Status(ctx context.Context, o client.Object) error {
	switch err := w.Client.Status().Update(ctx, o, client.FieldOwner(v1alpha1.ManagedByValue)); {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return ErrOutrun
	case err != nil:
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// Create makes a Job, unless the owner has changed since it was read: a status that
// was read from the cache may be older than the one that says how it ended.
func (w Writer) Create(ctx context.Context, owner client.Object, job *batchv1.Job) error {
	if err := w.Unchanged(ctx, owner); err != nil {
		return err
	}
	if err := w.Client.Create(ctx, job, client.FieldOwner(v1alpha1.ManagedByValue)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making Job %s: %w", job.Name, err)
	}
	return nil // one that exists is looked at in the next reconcile
}

// Unchanged returns ErrOutrun unless an object is as it was read.
func (w Writer) Unchanged(ctx context.Context, owner client.Object) error {
	fresh := owner.DeepCopyObject().(client.Object)
	switch err := w.Live.Get(ctx, client.ObjectKeyFromObject(owner), fresh); {
	case apierrors.IsNotFound(err):
		return ErrOutrun
	case err != nil:
		return fmt.Errorf("looking up %s once more: %w", owner.GetName(), err)
	case fresh.GetUID() != owner.GetUID() || fresh.GetResourceVersion() != owner.GetResourceVersion():
		return ErrOutrun
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
