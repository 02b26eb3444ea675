// Package snapshot copies the items of a Memcached's shards into a store while
// they are served, and back. docs/snapshot-format.md says what it writes.
//
// # Rules
//
// A snapshot is there once its manifest is, which is written last: whatever ends a
// save, there is a whole snapshot or none.
//
// A save lists all keys of a shard first, on disk and by age, and reads the values
// then, the ones that were asked for last first: a dump that is read slowly harms
// versions before 1.6.44. Memory does not grow with the number of items: what grows
// is the spool, by about the length of all keys, and the list of chunks, by some 150
// bytes per 2 MiB.
//
// Nothing is written into a memcached of a chunk that does not have its checksum,
// and nothing at all of a snapshot that lacks a chunk. A value of more than 1 MiB
// is in several chunks; when a later one is damaged, the connection is closed
// amid the value, and memcached forgets it.
//
// A connection that drops is made again, and what was not answered is asked again.
// A memcached that came back without its items is told by a sample of keys that
// it had moments ago.
//
// Errors are *snapshotapi.Failure, perhaps wrapped.
package snapshot
