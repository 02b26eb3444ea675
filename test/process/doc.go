// Package process tests the agent, internal/memcached/protocol and the snapshot program
// against real memcached processes of several versions, without a cluster. Snapshot
// stores are directories, and a real S3 server, the program S3_SERVER.
//
// The tests run as root: they mount small volumes, and run agents as other users, as
// PID 1, with a read-only root file system. MEMCACHED_DIR has one directory a version,
// each with an executable memcached.
//
// The test of a trap of memcached has two halves: what memcached does alone, and what
// it does under the agent. The first half shows that the second can fail.
package process
