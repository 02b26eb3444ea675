// Package backup copies the items of a Memcached to a store, once for each
// MemcachedBackup, and deletes the copy with it if its deletionPolicy is Delete. How a
// transfer runs once is documented in package transfer.
//
//	observe   what only a backup reads: while it is being deleted, the Job that deletes
//	          its snapshot and the restores that read it
//	plan      pure: what blocks it, its Job, its result
//	deletion  pure: what is left to do before a deleted backup disappears
//	metrics   age and result of the latest backup of each Memcached
//
// # Deletion
//
// A backup whose deletionPolicy is Delete gets a finalizer before it starts. When it is
// deleted, its own Job stops first. Then the operator waits for restores that read the
// snapshot, and creates a Job that deletes it. It tries that for ten minutes. After that,
// and in a namespace that is being deleted, the backup disappears and an event says where
// the data is.
//
// A backup whose Job never ran a container has written nothing and disappears at once.
//
// A restore and a deletion can't miss each other: a restore says Running and then reads
// from the API server whether its backup is being deleted. A deletion, which is in the
// API server already, then reads from it which restores run.
package backup
