// Package slab decides from memcached's arguments and version, without asking
// memcached, whether it can reload the items that it saved under other arguments or
// with another version. Agent and operator both decide by it, so it imports the
// standard library only.
//
// # Rule
//
// When memcached stops by SIGUSR1, it saves the memory of its items as it is, and a
// metadata file with the settings that gave that memory its layout. At the next start
// it compares each setting with its own (_mc_meta_load_cb in memcached.c). If one
// differs, it starts empty, without an error. These must be equal:
//
//   - the memory limit (-m), the largest item (-I), the smallest item (-n)
//   - the slab sizes: the growth factor (-f) as it was written, or -o slab_sizes
//   - the largest chunk (-o slab_chunk_max, no_chunked_items) and the slab page
//   - CAS (-C), slab reassignment (-o slab_reassign, no_slab_reassign)
//
// -o no_modern sets two of them. With extstore (-o ext_path) memcached always starts
// empty.
//
// Everything else may change: threads, connections, addresses, verbosity, the hash, the
// LRU, and memcached's version. The version matters where it changes the meaning of an
// option: before 1.6.24 slab_chunk_max was read as bytes, since then as KiB.
package slab
