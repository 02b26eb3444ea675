// Package checker is a client that knows what it may read. It writes, deletes and
// reads while a cache is changed, and tells of every answer that cannot be right.
//
// Each key belongs to one worker, which does one thing at a time, and each value is
// written once: it names its key and the number of the write. So a read may find
// what the key holds by the worker's book, or nothing, since a cache may lose an
// item; whatever else it finds is a mistake:
//
//	Wrong  a value that was never written to this key
//	Stale  a value that was written over
//	Back   a value after its deletion, or after the key was seen to hold nothing
//
// A write or a deletion without an answer may have been done, may never be, and may
// be done later than the next one: its request can wait in a connection that the
// client has given up. Such a key is written to no more. Until it is seen done, both
// are right; after that, what was before is not.
package checker
