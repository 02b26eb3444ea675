// Package transfer is the engine of what runs once: a MemcachedBackup and a
// MemcachedRestore. It creates a Job that copies items between a Memcached and a store,
// and reports its progress and its result. The controllers of the two kinds add what is
// theirs alone and don't know each other.
//
// A reconcile is three steps, each in the file of its name:
//
//	observe   all reads: the object, its Memcached, its Job, the Job's pods and their
//	          progress                                            → Observation
//	plan      pure: whether it can start, its progress and result → Plan with its Status and its Actions
//	apply     all writes: the status or the finalizer, then the events of its change, and
//	          then the Job
//
// They use
//
//	engine    the order of these steps, and what triggers them
//	state     pure: the state of a Job, and what to do about it
//	status    pure: the status after one state and the next
//	job       pure: a JobSpec → the Job
//	store     pure: a store of the API → the program's, and its volumes
//
// A plan announces one step: what it writes to the phase or to the finalizer triggers the reconcile that takes the next one.
//
// # How it runs once
//
// The status says Running before there is a Job, in a write that fails when the object
// has changed since it was read. The Job's name is derived from the object's UID, so
// there can't be a second one. The status records the Job's UID once it was observed: a
// Job that disappears after that is not created again. A Job has no
// ttlSecondsAfterFinished until the status contains its result, so a result can't vanish
// while the operator is away. So the operator may be killed between any two writes.
//
// A phase that is Complete or Failed is final. What can't be done at all is Failed before
// there is a Job. What isn't ready yet is Pending, up to the deadline.
package transfer
