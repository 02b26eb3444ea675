package memcached

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
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
// doesn't wait for another shard's problem.
func (w writer) apply(ctx context.Context, m *v1alpha1.Memcached, a Actions) result {
	r := &result{applied: map[resources.Key]bool{}, failedCreates: map[string]bool{}}
	if w.changeFinalizer(ctx, m, a.Finalizer, r); r.gone {
		return *r
	}
	if !w.createKey(ctx, a.Secret, a.SecretIsFirst, r) {
		return *r
	}
	w.writeBinding(ctx, a.Binding, r)
	for _, o := range a.Apply {
		err := w.client.Apply(ctx, o.WithPreconditions(o.uid, o.version), client.FieldOwner(v1alpha1.ManagedByValue), client.ForceOwnership)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return result{gone: true}
		}
		add(r, o.Key, err)
		r.applied[o.Key] = err == nil
	}
	for _, p := range a.Patch {
		add(r, resources.Key{Kind: resources.KindPod, Name: p.pod.Name}, client.IgnoreNotFound(w.patch(ctx, p)))
	}
	for _, o := range a.Create {
		r.failedCreates[o.GetName()] = w.create(ctx, o, r)
	}
	for _, key := range a.Postponed {
		r.failedCreates[key.Name] = true
	}
	for _, o := range a.Delete {
		add(r, keyOf(o), client.IgnoreNotFound(w.delete(ctx, o)))
	}
	return *r
}

// changeFinalizer creates the final backup, and adds or removes the finalizer.
func (w writer) changeFinalizer(ctx context.Context, m *v1alpha1.Memcached, c finalizerChange, r *result) {
	if c.backup != nil {
		err := w.client.Create(ctx, c.backup, client.FieldOwner(v1alpha1.ManagedByValue))
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			c = withoutBackup("its namespace is being deleted")
		} else {
			add(r, keyOf(c.backup), err)
		}
	}
	if !c.add && !c.remove {
		return
	}
	changed := m.DeepCopy()
	if c.add {
		controllerutil.AddFinalizer(changed, v1alpha1.FinalizerFinalBackup)
	} else {
		controllerutil.RemoveFinalizer(changed, v1alpha1.FinalizerFinalBackup)
	}
	patch := client.MergeFromWithOptions(m.DeepCopy(), client.MergeFromWithOptimisticLock{})
	err := w.client.Patch(ctx, changed, patch, client.FieldOwner(v1alpha1.ManagedByValue))
	switch {
	case apierrors.IsNotFound(err):
		r.gone = true
	case apierrors.IsConflict(err):
		r.conflict = true
	case err != nil:
		fail(r, "the finalizer", err)
	default:
		m.ResourceVersion, m.Finalizers = changed.ResourceVersion, changed.Finalizers
		r.gone = c.remove && m.DeletionTimestamp != nil
		if c.event != nil {
			r.events = append(r.events, *c.event)
		}
	}
}

// createKey creates the Secret with a random key, unless it exists: the operator can't read it. It
// reports whether to continue. A first one that exists may be collected soon. Shards don't depend on a Secret that the API server rejects; they
// start without their former pod's items then.
func (w writer) createKey(ctx context.Context, secret *corev1.Secret, isFirst bool, r *result) bool {
	if secret == nil {
		return true
	}
	key := make([]byte, resources.HandoverKeySize)
	_, _ = rand.Read(key) // it never fails
	secret.Data = map[string][]byte{resources.HandoverKey: key}
	err := w.client.Create(ctx, secret, client.FieldOwner(v1alpha1.ManagedByValue))
	switch {
	case apierrors.IsAlreadyExists(err):
		r.conflict = isFirst
		return !isFirst
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		r.gone = true
	default:
		add(r, keyOf(secret), err)
	}
	r.applied[keyOf(secret)] = err == nil
	return err == nil || !r.gone && (apierrors.IsForbidden(err) || isRejection(err))
}

// writeBinding creates or updates the Secret of a binding. That one exists is no error: a later reconcile reads it, if
// the operator may.
func (w writer) writeBinding(ctx context.Context, secret *corev1.Secret, r *result) {
	if secret == nil {
		return
	}
	if password := secret.Data[v1alpha1.BindingPasswordKey]; len(password) == 0 {
		secret.Data[v1alpha1.BindingPasswordKey] = []byte(rand.Text())
	}
	var err error
	if secret.ResourceVersion != "" {
		err = w.client.Update(ctx, secret, client.FieldOwner(v1alpha1.ManagedByValue))
	} else if err = w.client.Create(ctx, secret, client.FieldOwner(v1alpha1.ManagedByValue)); apierrors.IsAlreadyExists(err) {
		r.failed = append(r.failed, keyOf(secret))
		return
	}
	add(r, keyOf(secret), err)
	r.applied[keyOf(secret)] = err == nil
}

// patch writes one change of a pod.
func (w writer) patch(ctx context.Context, p podPatch) error {
	pod, raw := p.pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, p.bytes())
	if p.subresource != "" {
		return w.client.SubResource(p.subresource).Patch(ctx, pod, raw, client.FieldOwner(v1alpha1.ManagedByValue))
	}
	return w.client.Patch(ctx, pod, raw, client.FieldOwner(v1alpha1.ManagedByValue))
}

// create creates an object for another controller and reports whether a retry may be needed.
// The next observation contains an object that exists already.
func (w writer) create(ctx context.Context, o client.Object, r *result) (failed bool) {
	failures := len(r.failures)
	add(r, keyOf(o), w.client.Create(ctx, o, client.FieldOwner(v1alpha1.ManagedByValue)))
	return len(r.failures) > failures
}

// delete deletes an object, unless another one has taken its name. A pod or restore must be
// as it was observed, since it may have become ready or finished since.
func (w writer) delete(ctx context.Context, o client.Object) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	only := client.Preconditions{UID: &uid}
	if kind := keyOf(o).Kind; kind == resources.KindPod || kind == kindRestore {
		only.ResourceVersion = &version
	}
	return w.client.Delete(ctx, o, only, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// add records the result of a write.
func add(r *result, key resources.Key, err error) {
	switch {
	case err == nil:
		r.succeeded = true
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), isUIDMismatch(err):
		r.conflict = true
	case isRejection(err):
		r.failed = append(r.failed, key)
		r.rejections = append(r.rejections, fmt.Errorf("%s: %w", key, err))
	default:
		r.failed = append(r.failed, key)
		fail(r, key.String(), err)
	}
}

// fail records a write that is retried. A forbidden one is also reported: a quota or a policy
// that forbids it may change, but not by itself.
func fail(r *result, what string, err error) {
	r.failures = append(r.failures, fmt.Errorf("writing %s: %w", what, err))
	if apierrors.IsForbidden(err) {
		r.rejections = append(r.rejections, fmt.Errorf("%s: %w", what, err))
	}
}

// isRejection reports whether no retry changes the answer. For a list with two entries of one
// key, such as two topologySpreadConstraints, the API server says so in the message only.
func isRejection(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || strings.Contains(err.Error(), "failed to create typed patch object")
}

// isUIDMismatch reports whether the API server rejected a write because another object has
// taken the name since: the next observation contains it.
func isUIDMismatch(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == "metadata.uid"
}

// statusWriter writes the status.
type statusWriter struct{ client client.StatusClient }

// write writes a status that has changed and returns the previous one, or nil if it wrote
// nothing: the status is the same, the Memcached doesn't exist any more, or, in a conflict,
// another writer was faster and the status has to be computed again.
func (w statusWriter) write(ctx context.Context, m *v1alpha1.Memcached, status v1alpha1.MemcachedStatus) (previous *v1alpha1.MemcachedStatus, conflict bool, err error) {
	if equality.Semantic.DeepEqual(m.Status, status) {
		return nil, false, nil
	}
	before := m.DeepCopy()
	m.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err = w.client.Status().Patch(ctx, m, patch, client.FieldOwner(v1alpha1.ManagedByValue))
	switch {
	case err == nil:
		return &before.Status, false, nil
	case apierrors.IsConflict(err):
		return nil, true, nil
	case apierrors.IsNotFound(err):
		return nil, false, nil
	default:
		return nil, false, fmt.Errorf("writing the status: %w", err)
	}
}
