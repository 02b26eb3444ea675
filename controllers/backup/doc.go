// Package backup copies the items of a Memcached to a store, once for each
// MemcachedBackup, and deletes the copy with it if it is told to.
//
// A reconcile is four steps, each in the file of its name:
//
//	observe   all reads: the backup's Memcached, its Jobs, their pods; and, when
//	          it is being deleted, who reads its snapshot             → observed
//	plan      pure: whether it may begin, how far it is, how it ended
//	deletion  pure: what is left to do before a deleted one goes      → plan
//	apply     the writes, the status first, and the events of it
//	metrics   age and result of the newest backup of each Memcached
//
// The status goes first, so that nothing is done which it does not tell of: no Job
// without Running, and no Job expires before its result stands. Its write fails
// when the backup has changed since it was read, and then nothing else is done. So
// the operator may be killed between any two writes. What runs once, and how, is
// told in package snapshotjob.
//
// A phase that is Complete or Failed does not change any more. What cannot be done
// at all is Failed before there is a Job; what is only not there yet is waited for,
// no longer than the deadline.
//
// # Deletion
//
// A backup whose deletionPolicy is Delete has a finalizer from before it begins.
// When it is deleted, its own Job ends first, then whoever restores from it is
// waited for, and then a Job deletes the snapshot. That is tried for ten minutes:
// after that, and in a namespace that ends, the backup goes and an event tells
// where the data lies.
//
// A restore and a deletion cannot overlook each other: a restore says Running and
// then asks the API server whether its backup is being deleted; a deletion, which
// stands in the API server, asks it then for restores that run.
package backup
