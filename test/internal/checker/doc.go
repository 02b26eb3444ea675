// Package checker writes, deletes and reads items while a cache changes, and reports every answer that is wrong.
//
// Each key belongs to one worker, which does one operation at a time. Each value contains its key and the number of the
// write, except for counters. So a read must return what the worker expects, or nothing, since a cache may lose an item.
// Everything else is a finding:
//
//	Wrong   a value that was never written to this key
//	Stale   a value that was overwritten
//	Back    a value after its deletion, or after the key was seen to be empty
//	Expiry  an item that expires at another time than it should, or did not expire
//	Token   a token of a read that matched a value which changed in between
//
// A write or deletion without an answer may have happened, may never happen, or may happen after the next one: its request
// can wait in a connection that the client has abandoned. The worker does not write to such a key again. Until a read
// shows the write, both values are right. After that, the previous value is not.
package checker
