package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
)

const (
	// partSize in bytes is the least that S3 takes as a part of an upload.
	partSize = 5 << 20
	// abortTimeout is how long S3 has to forget the parts of an upload that failed.
	abortTimeout = 10 * time.Second
)

// Writer writes one object. It is not there until Close returned nil.
type Writer struct {
	w      *blob.Writer
	cancel context.CancelFunc
	file   *os.File // of a folder, else nil
	depth  int      // folders in the key
	err    error    // the first, after which the object must not appear
	closed bool
}

// Create returns a writer of the object at key, of which an older one is replaced.
// Close or Abort must be called. Errors are those of the bucket: see Failure.
func Create(ctx context.Context, b *blob.Bucket, key string) (*Writer, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &Writer{cancel: cancel, depth: strings.Count(key, "/")}
	var err error
	w.w, err = b.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: "application/octet-stream",
		BeforeWrite: func(as func(any) bool) error {
			as(&w.file)
			var uploads *transfermanager.Client
			var client *s3.Client
			if as(&uploads) && b.As(&client) {
				*uploads = *transfermanager.New(client, sparingly)
			}
			return nil
		},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	return w, nil
}

// sparingly makes uploads of small parts, one at a time: several shards are written
// at once by a Job with little memory.
func sparingly(o *transfermanager.Options) {
	o.PartSizeBytes = partSize
	o.MultipartUploadThreshold = partSize
	o.Concurrency = 1
	// Of its own, for the context of an upload that is given up has ended.
	o.FailTimeout = abortTimeout
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
}

// Write appends p to the object.
func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

// Close makes the object appear, durably, unless a Write failed or the context has
// ended, of which it returns the error. A second call does nothing.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	defer w.cancel()
	if w.err == nil && w.file != nil {
		w.err = w.file.Sync()
	}
	if w.err != nil {
		w.cancel()      // else what was written would appear as if it were all
		_ = w.w.Close() // its error is that it was cancelled
		return w.err
	}
	if w.err = w.w.Close(); w.err == nil && w.file != nil {
		w.err = w.syncFolders()
	}
	return w.err
}

// errAborted is what Close says of a Writer that was aborted.
var errAborted = errors.New("the write was aborted")

// Abort gives up: the object does not appear. After Close it does nothing.
func (w *Writer) Abort() {
	if w.closed {
		return
	}
	if w.err == nil {
		w.err = errAborted
	}
	_ = w.Close() // it says that it was aborted
}

// syncFolders makes the name of the file durable, and those of the folders that the
// key made.
func (w *Writer) syncFolders() error {
	folder := filepath.Dir(w.file.Name())
	for range w.depth + 1 {
		if err := syncFolder(folder); err != nil {
			return err
		}
		folder = filepath.Dir(folder)
	}
	return nil
}

func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("flushing a folder: %w", err)
	}
	defer f.Close()
	// Some file systems of a network have no such thing for a folder.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return fmt.Errorf("flushing a folder: %w", err)
	}
	return nil
}
