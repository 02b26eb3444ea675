// Package geometry tells, without asking memcached, whether it will take up what
// it saved under other arguments or with another version: by the slab geometry
// that its arguments make. Agent and operator decide by it, so it imports the
// standard library only.
//
// # Rule
//
// At a stop by SIGUSR1 memcached writes its items' memory as it is, and beside it
// a file of what gave that memory its shape. At the next start it compares each
// value with its own (_mc_meta_load_cb in memcached.c), and one that differs makes
// it start empty, without an error. These must be equal:
//
//   - the memory limit (-m), the largest item (-I), the smallest item (-n)
//   - the slab sizes: the growth factor (-f) as it was written, or -o slab_sizes
//   - the largest chunk (-o slab_chunk_max, no_chunked_items) and the slab page
//   - CAS (-C), slab reassignment (-o slab_reassign, no_slab_reassign)
//
// -o no_modern sets two of them. Under extstore (-o ext_path) memcached always
// starts empty.
//
// All else may change: threads, connections, addresses, verbosity, the hash, the
// LRU, and memcached's version. The version matters where it gives another meaning
// to the same word: below 1.6.24 slab_chunk_max was read as bytes, and as KiB
// since.
package geometry
