package apiserver

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Find reads an object from the first reader that has it, and reports whether one has.
func Find(ctx context.Context, key client.ObjectKey, o client.Object, readers ...client.Reader) (bool, error) {
	for _, reader := range readers {
		switch err := reader.Get(ctx, key, o); {
		case err == nil:
			return true, nil
		case !apierrors.IsNotFound(err):
			return false, fmt.Errorf("reading %s %s: %w", KindOf(o), key.Name, err)
		}
	}
	return false, nil
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

// KindOf returns the kind of an object.
func KindOf(o client.Object) string { return reflect.TypeOf(o).Elem().Name() }
