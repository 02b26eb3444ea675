// Package format reads and writes snapshots in a store, as docs/maintainers/snapshot-format.md
// describes them.
//
// # Rules
//
// A snapshot exists once its manifest does, which is written last and deleted
// first: a store contains complete snapshots and chunks without a manifest.
//
// A reader passes on nothing of a chunk whose checksum doesn't match. A value of more
// than 1 MiB spans several chunks, each of which is verified before it is passed on.
//
// Nothing in a store is trusted beyond the bounds of the format.
//
// Errors are *wire.Failure.
package format
