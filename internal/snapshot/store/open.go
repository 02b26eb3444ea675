package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// openTimeout limits the request by which Open checks the store.
const openTimeout = time.Minute

// Open returns the store, scoped to its directory or prefix, after a check that the store answers.
// Errors are a *wire.Failure. Open creates a missing directory, but not a bucket. The only
// credentials for S3 are the environment variables AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY and, optionally, AWS_SESSION_TOKEN; or AWS_ROLE_ARN and
// AWS_WEB_IDENTITY_TOKEN_FILE.
func Open(ctx context.Context, s wire.Store) (*blob.Bucket, error) {
	switch {
	case s.S3 != nil && s.Folder != "":
		return nil, wire.FailFinally(wire.ReasonStoreFailed, "the task specifies a directory and a bucket; specify one of them")
	case s.S3 != nil:
		return openS3(ctx, *s.S3, (&net.Dialer{}).DialContext)
	case s.Folder != "":
		return openDirectory(s.Folder)
	}
	return nil, wire.FailFinally(wire.ReasonStoreFailed, "the task specifies no store; specify a directory or a bucket")
}

func openDirectory(directory string) (*blob.Bucket, error) {
	if parts := strings.Split(directory, "/"); !filepath.IsAbs(directory) || slices.Contains(parts, ".") || slices.Contains(parts, "..") {
		return nil, wire.FailFinally(wire.ReasonStoreNotFound, "the directory %q is not an absolute path without . and ..", directory)
	}
	bucket, err := fileblob.OpenBucket(directory, &fileblob.Options{
		CreateDir: true,
		// A file can only be renamed within its file system.
		NoTempDir: true,
		// No *.attrs files: a restore needs nothing but the content.
		Metadata: fileblob.MetadataDontWrite,
	})
	if errors.Is(err, syscall.EROFS) {
		// The volume of a restore is mounted read-only.
		return nil, wire.FailFinally(wire.ReasonStoreNotFound,
			"opening the directory of the store: %s doesn't exist, and the volume is read-only here; correct the directory's name: %w", directory, err)
	}
	if err != nil {
		return nil, Failure(err, "opening the directory of the store")
	}
	return bucket, nil
}

// checkAccess lists one object: a HEAD request can't distinguish a missing object from a
// missing bucket.
func checkAccess(ctx context.Context, b *blob.Bucket) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, errNoAnswer)
	defer cancel()
	_, _, err := b.ListPage(ctx, blob.FirstPageToken, 1, nil)
	if err != nil && errors.Is(context.Cause(ctx), errNoAnswer) {
		err = errors.Join(errNoAnswer, err)
	}
	return err
}

var errNoAnswer = fmt.Errorf("no answer within %s", openTimeout)

// Prune removes the empty directories that a deleted snapshot at a path leaves: those below
// the path, and those above it except for the store's own. A bucket has no directories.
func Prune(s wire.Store, snapshot string) error {
	if s.Folder == "" || !fs.ValidPath(snapshot) || snapshot == "." {
		return nil
	}
	var directories []string
	err := filepath.WalkDir(filepath.Join(s.Folder, snapshot), func(p string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			directories = append(directories, p)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Failure(err, "removing empty directories")
	}
	slices.Reverse(directories) // the inner ones first
	for p := path.Dir(snapshot); p != "."; p = path.Dir(p) {
		directories = append(directories, filepath.Join(s.Folder, p))
	}
	for _, p := range directories {
		err := os.Remove(p)
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
			return nil // it contains another snapshot
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Failure(err, "removing empty directories")
		}
	}
	return nil
}

// Parse returns the store that a user specified, as a directory that exists or as a URL
// s3://BUCKET/PREFIX?endpoint=URL&region=REGION&ca=FILE.
func Parse(location string) (wire.Store, error) {
	if !strings.Contains(location, "://") {
		directory, err := filepath.Abs(location)
		if err == nil {
			_, err = os.Stat(directory) // Open would create it
		}
		return wire.Store{Folder: directory}, err
	}
	u, err := url.Parse(location)
	if err != nil {
		return wire.Store{}, fmt.Errorf("parsing the store's URL: %w", err)
	}
	if u.Scheme != "s3" || u.Host == "" {
		return wire.Store{}, fmt.Errorf("%s is neither a directory nor s3://BUCKET", location)
	}
	s := &wire.S3{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	parameters := map[string]*string{"endpoint": &s.Endpoint, "region": &s.Region, "ca": &s.CAFile}
	for name, values := range u.Query() {
		field, ok := parameters[name]
		if !ok || len(values) != 1 {
			return wire.Store{}, fmt.Errorf("parameter %s of %s: endpoint, region and ca are allowed once each", name, location)
		}
		*field = values[0]
	}
	return wire.Store{S3: s}, nil
}
