package apiserver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// WriteStatus writes how the next status of an object differs from the one that was read, and reports whether it does. set sets the next
// status. It returns ErrStale if the object has changed since: the status has to be computed again.
func WriteStatus[S any](ctx context.Context, c client.StatusClient, o client.Object, was, next S, set func()) (bool, error) {
	if equality.Semantic.DeepEqual(was, next) {
		return false, nil
	}
	before := o.DeepCopyObject().(client.Object)
	set()
	return true, written(o, c.Status().Patch(ctx, o, changes(before), client.FieldOwner(v1beta1.ManagedByValue)))
}

// WriteMetadata writes how the metadata of an object differs from when it was read. It returns ErrStale if the object
// has changed since.
func WriteMetadata(ctx context.Context, c client.Writer, before, after client.Object) error {
	return written(after, c.Patch(ctx, after, changes(before), client.FieldOwner(v1beta1.ManagedByValue)))
}

func changes(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func written(o client.Object, err error) error {
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return ErrStale
	case err != nil:
		return fmt.Errorf("writing %s %s: %w", KindOf(o), o.GetName(), err)
	}
	return nil
}

// Create creates an object, unless it exists: then the next reconcile observes it.
func Create(ctx context.Context, c client.Writer, o client.Object) error {
	switch err := c.Create(ctx, o, client.FieldOwner(v1beta1.ManagedByValue)); {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("creating %s %s: %w", KindOf(o), o.GetName(), err)
	}
	log.FromContext(ctx).Info("Created "+KindOf(o), "object", o.GetName())
	return nil
}

// Delete deletes an object, but none that took its name.
func Delete(ctx context.Context, c client.Writer, o client.Object, options ...client.DeleteOption) error {
	uid := o.GetUID()
	err := c.Delete(ctx, o, append(options, client.Preconditions{UID: &uid})...)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("deleting %s %s: %w", KindOf(o), o.GetName(), err)
	}
	return nil
}
