// Package load puts a fixed load on the shards of a cache, as an application's
// direct client does, and counts what came of every operation: in buckets of time,
// a shard each.
//
// # The client
//
// A key belongs to the shard at crc32(key) modulo the number of addresses, as in
// gomemcache. Each shard has a few workers, each with a connection that it keeps
// open and dials again after an error. An operation that fails for want of an
// answer is tried once more; an answer of memcached, whatever it says, is not.
//
// # The load
//
// Operations are due at fixed moments whether or not the ones before were answered,
// so that a stall costs what it would cost an application: the load is open-loop,
// and latencies count from when an operation was due. One that has no answer after
// Patience, its retry and its wait for a free worker included, is an error.
//
// 80 of 100 operations read a key and 20 write one. Both pick it by Zipf's law: the
// key of rank r with a probability in proportion to 1/r^0.99, the exponent of the
// YCSB benchmark. A get that finds nothing, and one that fails, reads the database,
// which takes DatabaseTime; after a miss the client then stores the value
// (cache-aside). Such a fill comes on top of the mix: a cache that lost its items is
// filled as fast as its clients ask, which is the kindest case, since the database
// is never the slower for it.
//
// # Hits lost
//
//	hits lost = hit ratio before × gets − hits, over the time after
//	seconds   = hits lost ÷ hits per second before
//
// A get without an answer is a get without a hit, so an outage counts as well as a
// shard that starts empty. A cache that lost every item loses in the end one hit a
// key: keys ÷ operations per second, in seconds of full traffic.
package load
