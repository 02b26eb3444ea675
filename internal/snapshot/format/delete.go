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

// maxDeletions is how many objects are deleted at a time, since S3 takes two requests for each, and maxPage how many are listed.
const (
	maxDeletions = 16
	maxPage      = 1000
)

// Delete deletes the snapshot at a path, its manifest first, so that a manifest never
// lists a chunk that was deleted. A missing snapshot is no error.
func Delete(ctx context.Context, bucket *blob.Bucket, at string) error {
	if err := deleteObject(ctx, bucket, path.Join(at, ManifestName)); err != nil {
		return err
	}
	return DeleteAll(ctx, bucket, at)
}

// DeleteAll deletes all objects below a path but some. It lists no page before it has deleted the one before: a list of a volume fails
// if one of its files disappears.
func DeleteAll(ctx context.Context, bucket *blob.Bucket, at string, kept ...string) error {
	for token := blob.FirstPageToken; len(token) > 0; {
		objects, next, err := bucket.ListPage(ctx, token, maxPage, &blob.ListOptions{Prefix: path.Clean(at) + "/"})
		if err != nil {
			return store.Failure(err, "listing the snapshot's objects")
		}
		group, run := errgroup.WithContext(ctx)
		group.SetLimit(maxDeletions)
		for _, object := range objects {
			if run.Err() == nil && !slices.Contains(kept, object.Key) { // volumes ignore the context
				group.Go(func() error { return deleteObject(run, bucket, object.Key) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if token = next; ctx.Err() != nil {
			return store.Failure(ctx.Err(), "deleting the snapshot's objects")
		}
	}
	return nil
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
