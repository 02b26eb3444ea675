// Package snapshotjob makes the Jobs that copy items between a Memcached and a
// store, and reads what becomes of them. It serves what runs once: a
// MemcachedBackup and a MemcachedRestore share it, and not each other's code.
//
//	job      pure: a Run → the Job
//	store    pure: a store as the API has it → as the Job is told, and mounted
//	observe  the Job, its pods and what it tells of its progress → Observed
//	judge    pure: Observed → Verdict, how far it is and why
//	status   pure: the status of what runs, from one verdict to the next
//	write    the writes: create, end and expire a Job
//	reach    pure: the addresses of a Memcached's shards
//
// # How it runs once
//
// The status says Running before there is a Job, in a write that fails when the
// object has changed since it was read. The Job's name comes of the object's UID,
// so that a second one cannot be made. Once the Job was seen, its UID is noted: if
// it is gone after that, it is not made again. It has no ttlSecondsAfterFinished
// until its result stands in the status, so that a result cannot vanish while the
// operator is away.
package snapshotjob
