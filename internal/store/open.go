package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// openTimeout bounds the question by which Open finds out whether the store answers.
const openTimeout = time.Minute

// Open returns the store, which answered, scoped to its folder or prefix. Errors
// are a *snapshotapi.Failure. A folder is made when it is missing; a bucket is not.
// The credentials of S3 are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and perhaps
// AWS_SESSION_TOKEN of the environment, and nothing else.
func Open(ctx context.Context, s snapshotapi.Store) (*blob.Bucket, error) {
	switch {
	case s.S3 != nil && s.Folder != "":
		return nil, snapshotapi.FailFinally(v1alpha1.ReasonStoreFailed, "the task names a folder and a bucket; give one of them")
	case s.S3 != nil:
		return openS3(ctx, *s.S3)
	case s.Folder != "":
		return openFolder(s.Folder)
	}
	return nil, snapshotapi.FailFinally(v1alpha1.ReasonStoreFailed, "the task names no store; give a folder or a bucket")
}

func openFolder(folder string) (*blob.Bucket, error) {
	if !filepath.IsAbs(folder) || hasDots(folder) {
		return nil, snapshotapi.FailFinally(v1alpha1.ReasonStoreNotFound, "the folder %q is not an absolute path without . and ..", folder)
	}
	bucket, err := fileblob.OpenBucket(folder, &fileblob.Options{
		CreateDir: true,
		// A file is renamed to its name: from elsewhere it could not be.
		NoTempDir: true,
		// No file *.attrs beside each: who restores from a folder needs no more than
		// was written to it.
		Metadata: fileblob.MetadataDontWrite,
	})
	if errors.Is(err, syscall.EROFS) {
		// Such is the volume of a restore, whoever named a folder that is not there.
		return nil, snapshotapi.FailFinally(v1alpha1.ReasonStoreNotFound,
			"opening the folder of the store: there is no %s, and it cannot be made as the volume is read-only here; mend the folder's name: %w", folder, err)
	}
	if err != nil {
		return nil, Failure(err, "opening the folder of the store")
	}
	return bucket, nil
}

// probe asks the store whether it is there and lets us in: a HEAD of an object that
// is missing would not tell it from a bucket that is.
func probe(ctx context.Context, b *blob.Bucket) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, errNoAnswer)
	defer cancel()
	_, _, err := b.ListPage(ctx, blob.FirstPageToken, 1, nil)
	if err != nil && errors.Is(context.Cause(ctx), errNoAnswer) {
		err = errors.Join(errNoAnswer, err)
	}
	return err
}

var errNoAnswer = fmt.Errorf("there was no answer within %s", openTimeout)

// hasDots says whether a path has a part . or .. by which it could lead elsewhere.
func hasDots(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// Missing says whether an error tells that an object is not there, while its
// bucket or folder is.
func Missing(err error) bool {
	return isAPIError(err, "NoSuchKey", "NotFound") || errors.Is(err, os.ErrNotExist)
}

// Prune removes the folders that were left empty when the snapshot at a path of the
// store was deleted: those below it, and those above it but the store's own. A bucket
// has no folders.
func Prune(s snapshotapi.Store, snapshot string) error {
	if s.Folder == "" || !fs.ValidPath(snapshot) || snapshot == "." {
		return nil
	}
	var folders []string
	err := filepath.WalkDir(filepath.Join(s.Folder, snapshot), func(p string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, p)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Failure(err, "removing empty folders")
	}
	slices.Reverse(folders) // the inner ones first
	for p := path.Dir(snapshot); p != "."; p = path.Dir(p) {
		folders = append(folders, filepath.Join(s.Folder, p))
	}
	for _, p := range folders {
		err := os.Remove(p)
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
			return nil // another snapshot's
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Failure(err, "removing empty folders")
		}
	}
	return nil
}
