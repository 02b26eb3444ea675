// Package store opens the places where snapshots are stored: a directory of a file system,
// or a bucket of Amazon S3 or of a compatible server.
//
// # What a write guarantees
//
// An object exists completely once Put has returned nil, and never in part: in a directory,
// a temporary file is renamed; S3 creates an object after it has received all of it. In a
// directory, the file and the directories above it are flushed (fsync) before Put returns, so
// that the object survives a crash of the node if the volume honors fsync. A program that
// was killed leaves a file *.tmp beside its object, which List returns, or parts of an
// upload, which a life-cycle rule of the bucket removes.
//
// # Errors and timeouts
//
// Open lists one object, so that a wrong name, credential or certificate is reported
// before anything is read, and fails after a minute. Later, each request is attempted at
// most four times, with ten seconds for a connection and thirty for an answer; a
// connection fails after a minute without a byte. A server may therefore restart within
// a few seconds. An error that a retry can't fix, such as an untrusted certificate, isn't
// retried.
//
// # Memory
//
// A write to S3 needs up to three parts of five MiB.
package store
