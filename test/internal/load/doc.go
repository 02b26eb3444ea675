// Package load puts a fixed load on the shards of a cache, as a client of an application does, and counts the results of
// all operations per shard and time bucket.
//
// # Client
//
// A key belongs to the shard at crc32(key) modulo the number of addresses, as in gomemcache. Each shard has some workers,
// each with a connection that it keeps open and reopens after an error. An operation without an answer is retried once. An
// answer of memcached is not retried, whatever it says.
//
// # Load
//
// Operations are due at fixed times whether or not earlier ones were answered, so that a stall costs what it costs an
// application: the load is open-loop, and latencies count from when an operation was due. An operation without an answer
// after Patience is an error. This includes its retry and its wait for a free worker.
//
// 80 of 100 operations read a key and 20 write one. Both select it by Zipf's law: the key of rank r with a probability
// proportional to 1/r^0.99, the exponent of the YCSB benchmark. After a miss or an error of a get, the client reads the
// database, which takes DatabaseTime. After a miss it then stores the value (cache-aside), in addition to the 20 sets. A
// cache that lost its items is thus filled as fast as its clients read, which is the best case, since the database does
// not slow down.
//
// # Hits lost
//
//	hits lost = hit ratio before × gets − hits, over the time after
//	seconds   = hits lost ÷ hits per second before
//
// A get without an answer is a get without a hit, so downtime counts as well as a shard that starts empty. A cache that
// lost every item loses one hit per key: keys ÷ operations per second, in seconds of full traffic.
package load
