package snapshot

import (
	"context"
	"errors"
	"io"
	"path"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/memcached-operator/memcached-operator/internal/store"
)

// Delete removes what is at a path, the manifest first, so that nothing that is
// whole by its manifest ever lacks a chunk. That nothing is there is no error.
func Delete(ctx context.Context, bucket *blob.Bucket, at string) error {
	if err := deleteObject(ctx, bucket, path.Join(at, ManifestName)); err != nil {
		return err
	}
	return deleteAll(ctx, bucket, at)
}

// deleteAll removes everything below a path.
func deleteAll(ctx context.Context, bucket *blob.Bucket, at string) error {
	list := bucket.List(&blob.ListOptions{Prefix: path.Clean(at) + "/"})
	for {
		object, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return store.Failure(err, "listing the snapshot's objects")
		}
		if err := deleteObject(ctx, bucket, object.Key); err != nil {
			return err
		}
	}
}

// deleteObject removes an object that may be gone already.
func deleteObject(ctx context.Context, bucket *blob.Bucket, name string) error {
	err := bucket.Delete(ctx, name)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return store.Failure(err, "deleting the snapshot's objects")
}

// holdsAnything reports whether there is an object below a path.
func holdsAnything(ctx context.Context, bucket *blob.Bucket, at string) (bool, error) {
	_, err := bucket.List(&blob.ListOptions{Prefix: path.Clean(at) + "/"}).Next(ctx)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, store.Failure(err, "listing the snapshot's objects")
}
