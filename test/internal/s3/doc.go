// Package s3 runs a real S3 server for tests: rclone, which serves the folders of a folder as buckets. It runs as a process
// or in a cluster, with TLS by an authority of the tests.
package s3
