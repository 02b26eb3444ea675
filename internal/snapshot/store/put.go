package store

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// Put writes the object at key durably and completely, or not at all. It replaces an
// existing one. Errors are those of the bucket: see Failure.
func Put(ctx context.Context, b *blob.Bucket, key string, content []byte) error {
	return PutFrom(ctx, b, key, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// PutFrom is Put of what a function writes. Errors are those of the function, too.
func PutFrom(ctx context.Context, b *blob.Bucket, key string, write func(io.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var file *os.File // nil for S3
	w, err := b.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: "application/octet-stream",
		BeforeWrite: func(as func(any) bool) error {
			as(&file)
			var uploads *transfermanager.Client
			var client *s3.Client
			if as(&uploads) && b.As(&client) {
				*uploads = *transfermanager.New(client, limitMemory)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	if err = write(w); err == nil && file != nil {
		err = file.Sync()
	}
	if err != nil {
		cancel()      // otherwise Close would create an incomplete object
		_ = w.Close() // its error is the cancellation
		return err
	}
	if err := w.Close(); err != nil || file == nil {
		return err
	}
	// The names of the file and of the directories in its key must be durable too.
	directory := filepath.Dir(file.Name())
	for range strings.Count(key, "/") + 1 {
		if err := syncDirectory(directory); err != nil {
			return fmt.Errorf("flushing a directory: %w", err)
		}
		directory = filepath.Dir(directory)
	}
	return nil
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

func syncDirectory(directory string) error {
	f, err := os.Open(directory)
	if err != nil {
		return err
	}
	defer f.Close()
	// Some network file systems can't flush a directory.
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
