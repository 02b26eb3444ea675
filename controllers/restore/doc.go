// Package restore copies the items of a snapshot into a Memcached, once for each
// MemcachedRestore. How a transfer runs once is documented in package transfer.
//
//	observe   what only a restore reads: its backup, and the Services that the operator
//	          created for it
//	plan      pure: what blocks it, and its result
//	job       pure: its Job, and the Services that the Job needs
//
// Between the status that says Running and the Job, the operator reads the backup from
// the API server: it may be about to be deleted. See the doc of package backup.
//
// # Updates and other restores
//
// A restore and the replacement of a shard exclude each other, as do two restores into a
// common shard. Each announces its start in its status and then reads the other's from the
// API server: an update names the shard that it replaces next, a restore is Running. An
// update waits for a restore that is Running. A restore that has no Job yet withdraws: it
// becomes Pending again. So an announced update is first, and the two never wait for each
// other.
//
// # Bootstrap
//
// While a Memcached is filled for the first time, its shards are not Ready and its
// Services don't lead to them. The restore that status.bootstrap names reaches them
// through Services of its own, one for each shard, which ignore readiness and are deleted
// when it has finished.
package restore
