// Package copy copies the items of a Memcached's shards into a store while they
// keep serving, and back. Package format defines what is stored.
//
// # Rules
//
// A save ends with a complete snapshot or with none.
//
// A save lists all keys of a shard on disk first, by age, and then reads the values,
// most recently used first: a dump that is read slowly harms memcached before 1.6.44.
// Memory doesn't grow with the number of items. Only the key spool grows, by about the
// length of all keys, and the list of chunks, by 32 bytes each.
//
// A load writes nothing of a snapshot that lacks a chunk, and no item whose chunk
// doesn't match its checksum. If a later chunk of a large value is damaged, the load
// closes the connection within the value, and memcached discards it.
//
// A lost connection is reopened, and requests without an answer are sent again. A
// sample of keys that memcached had a moment ago detects that memcached lost its items.
//
// Errors are *wire.Failure, possibly wrapped.
package copy
