package format

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
)

// Delete deletes the snapshot at a path, its manifest first, so that a manifest never
// lists a chunk that was deleted. A missing snapshot is no error.
func Delete(ctx context.Context, bucket *blob.Bucket, at string) error {
	if err := deleteObject(ctx, bucket, path.Join(at, ManifestName)); err != nil {
		return err
	}
	return DeleteAll(ctx, bucket, at)
}

// DeleteAll deletes all objects below a path but some.
func DeleteAll(ctx context.Context, bucket *blob.Bucket, at string, kept ...string) error {
	objects, listed := bucket.List(&blob.ListOptions{Prefix: path.Clean(at) + "/"}).All(ctx)
	for object := range objects {
		if slices.Contains(kept, object.Key) {
			continue
		}
		if err := deleteObject(ctx, bucket, object.Key); err != nil {
			return err
		}
	}
	return store.Failure(listed(), "listing the snapshot's objects")
}

func deleteObject(ctx context.Context, bucket *blob.Bucket, name string) error {
	err := bucket.Delete(ctx, name)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return store.Failure(err, "deleting the snapshot's objects")
}

func containsObjects(ctx context.Context, bucket *blob.Bucket, at string) (bool, error) {
	_, err := bucket.List(&blob.ListOptions{Prefix: path.Clean(at) + "/"}).Next(ctx)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, store.Failure(err, "listing the snapshot's objects")
}
