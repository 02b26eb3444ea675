// Package s3 runs a real server of S3 for tests: rclone, which serves a folder
// whose folders are the buckets. It runs as a process, or in a cluster, with TLS by
// an authority of the tests' own.
package s3
