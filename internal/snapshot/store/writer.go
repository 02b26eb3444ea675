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
	// partSize in bytes is the minimum that S3 accepts for a part of an upload.
	partSize = 5 << 20
	// abortTimeout limits the request that deletes the parts of a failed upload.
	abortTimeout = 10 * time.Second
)

// Writer writes one object, which exists once Close has returned nil.
type Writer struct {
	w      *blob.Writer
	cancel context.CancelFunc
	file   *os.File // nil for S3
	depth  int      // number of folders in the key
	err    error    // the first one, after which the object must not be created
	closed bool
}

// Create returns a writer of the object at key, which replaces an existing one. Close or
// Abort must be called. Errors are those of the bucket: see Failure.
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
				*uploads = *transfermanager.New(client, limitMemory)
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

// limitMemory uploads small parts, one at a time, because a Job with little memory
// writes several shards at a time.
func limitMemory(o *transfermanager.Options) {
	o.PartSizeBytes = partSize
	o.MultipartUploadThreshold = partSize
	o.Concurrency = 1
	// The context of an aborted upload is done already.
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

// Close creates the object durably. It returns the error of a failed Write or of the
// context instead, and then the object isn't created. A second call has no effect.
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
		w.cancel()      // otherwise Close would create an incomplete object
		_ = w.w.Close() // its error is the cancellation
		return w.err
	}
	if w.err = w.w.Close(); w.err == nil && w.file != nil {
		w.err = w.syncFolders()
	}
	return w.err
}

// errAborted is the error of Close after Abort.
var errAborted = errors.New("the write was aborted")

// Abort discards what was written. After Close it has no effect.
func (w *Writer) Abort() {
	if w.closed {
		return
	}
	if w.err == nil {
		w.err = errAborted
	}
	_ = w.Close() // its error is errAborted
}

// syncFolders makes the file's name durable, and those of the folders in its key.
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
	// Some network file systems can't flush a folder.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return fmt.Errorf("flushing a folder: %w", err)
	}
	return nil
}
