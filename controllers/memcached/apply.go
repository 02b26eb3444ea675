package memcached

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// writer makes all writes but that of the status.
type writer struct {
	client interface {
		client.Writer
		client.SubResourceClientConstructor
	}
}

// apply makes the writes in their order. A failed write doesn't prevent the others: a shard
// doesn't wait for another shard's problem, except for its deletion.
func (w writer) apply(ctx context.Context, m *v1beta1.Memcached, a plan.Actions) plan.Result {
	r := &plan.Result{Applied: map[resources.Key]bool{}}
	if w.changeFinalizer(ctx, m, a.Finalizer, r); r.Gone {
		return *r
	}
	for _, secret := range a.Secrets {
		if !w.createKeys(ctx, secret, r) {
			return *r
		}
	}
	w.writeBinding(ctx, a.Binding, a.BindingRepeats, r)
	for _, o := range a.Apply {
		err := w.applyObject(ctx, o.WithPreconditions(o.UID, o.Version))
		if o.Fallback != nil && apiserver.IsRejected(err) && !apiserver.IsTerminating(err) {
			err = w.applyObject(ctx, o.Fallback)
		}
		if apiserver.IsTerminating(err) {
			return plan.Result{Gone: true}
		}
		add(r, o.Key, err)
		r.Applied[o.Key] = err == nil
	}
	for _, p := range a.Patch {
		_, err := w.patch(ctx, p)
		add(r, resources.Key{Kind: resources.KindPod, Name: p.Pod.Name}, client.IgnoreNotFound(err))
	}
	for _, o := range a.Create {
		err := w.client.Create(ctx, o, client.FieldOwner(v1beta1.ManagedByValue))
		add(r, resources.KeyOf(o), err)
		r.Applied[resources.KeyOf(o)] = err == nil || apierrors.IsAlreadyExists(err) // the next observation contains it
	}
	for _, o := range a.Delete {
		add(r, resources.KeyOf(o), client.IgnoreNotFound(w.delete(ctx, o)))
	}
	for _, o := range a.ScaleIn {
		err := client.IgnoreNotFound(w.delete(ctx, o))
		if add(r, resources.KeyOf(o), err); err != nil {
			break
		}
	}
	return *r
}

func (w writer) applyObject(ctx context.Context, o runtime.ApplyConfiguration) error {
	return w.client.Apply(ctx, o, client.FieldOwner(v1beta1.ManagedByValue), client.ForceOwnership)
}

// changeFinalizer creates the final backup, and adds or removes the finalizer.
func (w writer) changeFinalizer(ctx context.Context, m *v1beta1.Memcached, c plan.FinalizerChange, r *plan.Result) {
	if c.Backup != nil {
		err := w.client.Create(ctx, c.Backup, client.FieldOwner(v1beta1.ManagedByValue))
		if apiserver.IsTerminating(err) {
			c = plan.WithoutBackup("its namespace is being deleted")
		} else {
			add(r, resources.KeyOf(c.Backup), err)
		}
	}
	if !c.Add && !c.Remove {
		return
	}
	changed := m.DeepCopy()
	if c.Add {
		controllerutil.AddFinalizer(changed, v1beta1.FinalizerFinalBackup)
	} else {
		controllerutil.RemoveFinalizer(changed, v1beta1.FinalizerFinalBackup)
	}
	patch := client.MergeFromWithOptions(m.DeepCopy(), client.MergeFromWithOptimisticLock{})
	err := w.client.Patch(ctx, changed, patch, client.FieldOwner(v1beta1.ManagedByValue))
	switch {
	case apierrors.IsNotFound(err):
		r.Gone = true
	case apierrors.IsConflict(err):
		r.Conflict = true
	case err != nil:
		fail(r, "the finalizer", err)
	default:
		m.ResourceVersion, m.Finalizers = changed.ResourceVersion, changed.Finalizers
		r.Gone = c.Remove && m.DeletionTimestamp != nil
		if c.Event != nil {
			r.Events = append(r.Events, *c.Event)
		}
	}
}

// createKeys creates a Secret with random keys, and reports whether to continue. The operator can't read an existing Secret,
// which stays. If the API server rejects the Secret, shards start without the items of their former pods, or of other shards.
func (w writer) createKeys(ctx context.Context, secret *corev1.Secret, r *plan.Result) bool {
	for name := range secret.Data {
		key := make([]byte, resources.KeySize)
		_, _ = rand.Read(key) // it never fails
		secret.Data[name] = key
	}
	err := w.client.Create(ctx, secret, client.FieldOwner(v1beta1.ManagedByValue))
	switch {
	case apierrors.IsAlreadyExists(err):
		return true
	case apiserver.IsTerminating(err):
		r.Gone = true
	default:
		add(r, resources.KeyOf(secret), err)
	}
	r.Applied[resources.KeyOf(secret)] = err == nil
	return err == nil || !r.Gone && apiserver.IsRejected(err)
}

// writeBinding creates or updates the Secret of a binding. That it exists is no error: a later reconcile reads it, if
// the operator may. Nor is the rejection of one that existed before: a quota rejects its creation although it still exists.
func (w writer) writeBinding(ctx context.Context, secret *corev1.Secret, repeats bool, r *plan.Result) {
	if secret == nil {
		return
	}
	if password := secret.Data[v1beta1.BindingPasswordKey]; len(password) == 0 {
		secret.Data[v1beta1.BindingPasswordKey] = []byte(rand.Text())
	}
	var err error
	if secret.ResourceVersion != "" {
		err = w.client.Update(ctx, secret, client.FieldOwner(v1beta1.ManagedByValue))
	} else {
		err = w.client.Create(ctx, secret, client.FieldOwner(v1beta1.ManagedByValue))
	}
	key, exists, rejected := resources.KeyOf(secret), apierrors.IsAlreadyExists(err), apiserver.IsRejected(err)
	switch {
	case exists:
	case rejected && repeats:
		r.BindingRejection = err
	default:
		add(r, key, err)
	}
	r.BindingAnswered = err == nil || exists || rejected // otherwise, it is tried again soon
	r.Applied[key] = err == nil || exists && repeats
}

// patch writes one change of a pod, and returns the pod as the API server does.
func (w writer) patch(ctx context.Context, p plan.PodPatch, options ...client.PatchOption) (*corev1.Pod, error) {
	pod, raw := p.Pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, p.Bytes())
	if p.Subresource != "" {
		return pod, w.client.SubResource(p.Subresource).Patch(ctx, pod, raw, client.FieldOwner(v1beta1.ManagedByValue))
	}
	return pod, w.client.Patch(ctx, pod, raw, append(options, client.FieldOwner(v1beta1.ManagedByValue))...)
}

// delete deletes an object, unless another one has taken its name. A pod or restore must be
// as it was observed, since it may have become ready or finished since.
func (w writer) delete(ctx context.Context, o client.Object) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	only := client.Preconditions{UID: &uid}
	if kind := resources.KeyOf(o).Kind; kind == resources.KindPod || kind == resources.KindRestore {
		only.ResourceVersion = &version
	}
	return w.client.Delete(ctx, o, only, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// add records the result of a write.
func add(r *plan.Result, key resources.Key, err error) {
	switch {
	case err == nil:
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), isUIDMismatch(err):
		r.Conflict = true
	default:
		fail(r, key.String(), err)
	}
}

// fail records a write that failed. The status reports what was rejected. A retry may succeed, unless the API server rejects
// what the write contains.
func fail(r *plan.Result, what string, err error) {
	rejected := apiserver.IsRejected(err)
	if rejected {
		r.Rejections = append(r.Rejections, fmt.Errorf("%s: %w", what, err))
	}
	if !rejected || apierrors.IsForbidden(err) {
		r.Failures = append(r.Failures, fmt.Errorf("writing %s: %w", what, err))
	}
}

// isUIDMismatch reports whether the API server rejected a write because another object has
// taken the name since: the next observation contains it.
func isUIDMismatch(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == "metadata.uid"
}
