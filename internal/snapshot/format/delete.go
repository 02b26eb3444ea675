package format

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
)

// maxDeletions is how many objects are deleted at a time: S3 takes two requests for each.
const maxDeletions = 16

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
	group, run := errgroup.WithContext(ctx)
	group.SetLimit(maxDeletions)
	objects, listed := bucket.List(&blob.ListOptions{Prefix: path.Clean(at) + "/"}).All(run)
	for object := range objects {
		if !slices.Contains(kept, object.Key) {
			group.Go(func() error { return deleteObject(run, bucket, object.Key) })
		}
	}
	if err := group.Wait(); err != nil { // which also stops the list
		return err
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
