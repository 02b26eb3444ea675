// Package process holds the tests of the agent, of internal/memcache and of the
// program of snapshots against real memcached processes of several versions, without
// a cluster. Stores are folders, and a real server of S3, the program S3_SERVER.
//
// They run as root: they mount small volumes, and run agents under other users,
// as PID 1, with a read-only root. MEMCACHED_DIR has one folder a version, each
// with an executable memcached.
//
// A trap of memcached has two halves: what memcached does when it is left
// alone, and what the agent makes of it. The first shows that the second can fail.
package process
