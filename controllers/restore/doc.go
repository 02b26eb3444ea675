// Package restore copies the items of a snapshot into a Memcached, once for each
// MemcachedRestore. How a transfer runs once is documented in package transfer.
//
//	observe   what only a restore reads: its backup, and the other restores
//	plan      pure: what blocks it, and its result
//	job       pure: its Job
//
// Between the status that says Running and the Job, the operator reads the backup from
// the API server: it may be about to be deleted. See the doc of package backup.
//
// # Updates and other restores
//
// A restore and the replacement of a shard exclude each other, as do two restores into a
// common shard. Each announces its start in its status and then reads the other's from the
// API server: an update names the shard that it replaces next, a restore is Running. An
// update waits for a restore that is Running. A restore without a Job that is blocked
// becomes Pending again. So an announced update is first, and the two never wait for each
// other.
package restore
