// Package ring computes the shard of a key as clients do: they don't find an item that
// a restore puts elsewhere.
//
// # Rings
//
// Each gives exactly the result of one client library, with which test/peers
// compares it:
//
//   - Modulo: crc32 (IEEE) of the key, modulo the number of servers in the order
//     given. Source: ServerList.PickServer of github.com/bradfitz/gomemcache.
//   - Jump: jump hash of the key's xxhash64, over the servers in natural order.
//     Source: MemcachedJumpHashSelector of github.com/grafana/dskit/cache.
//   - Rendezvous: the server with the highest murmur3 (32 bits) of
//     "host:port-key"; in a tie, the name that sorts last. Source: HashClient and
//     RendezvousHash of pymemcache.
//   - Ketama: 160 points a server on a circle, four from each MD5 of "host-0",
//     "host-1", …, or "host:port-0" where the port is not 11211; a key belongs to
//     the first point at or after the first 32 bits of its MD5. Source:
//     update_continuum and dispatch_host of libmemcached under
//     MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, all weights 1.
//
// # Client settings that no ring supports
//
//   - A prefix that the client adds to the key after it has chosen the server
//     (key_prefix of pymemcache, the prefix key of libmemcached): the key that
//     memcached knows is not the one that was hashed.
//   - A server key, by which the application groups items.
//   - Other hashes or weights, libmemcached's ketama without weighted, and
//     pymemcache's keys of type bytes, which it hashes as they print: b'…'.
package ring
