// Package restore brings the items of a snapshot into a Memcached, once for each
// MemcachedRestore.
//
// A reconcile is four steps, each in the file of its name:
//
//	observe   all reads: the restore's Memcached and backup, its Job, the Job's
//	          pods and the Services that the operator made for it    → observed
//	plan      pure: whether it may begin, how far it is, how it ended → plan
//	task      pure: what the Job is told, and the Services that it needs
//	apply     the writes, the status first, and the events of it
//
// As for a backup, nothing is done that the status does not tell of, and its write
// fails when the restore has changed since it was read; what runs once, and how, is
// told in package snapshotjob.
//
// What cannot be done at all is Failed before there is a Job, so that nothing is
// loaded halfway. What is only not there yet, such as a backup that still runs, is
// waited for, no longer than the deadline.
//
// Between the status that says Running and the Job, the backup is read from the API
// server: it may be on its way out. See the doc of package backup.
//
// # Bootstrap
//
// While a Memcached is filled for the first time, its shards are not Ready and no
// Service of theirs leads to them. The restore that status.bootstrap names reaches
// them through Services of its own, one a shard, which do not ask for readiness and
// go when it has ended.
package restore
