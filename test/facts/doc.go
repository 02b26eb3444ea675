// Package facts compares what the operator knows of memcached with each version of it: slab classes, the layout of the memory
// file, and the arguments with which it rejects saved items.
package facts
