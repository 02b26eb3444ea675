package peerlink

import "testing"

// A shard that leaves a cache of 128 has a link to each of the others, in a container that may have 30 MB for all of them.
func TestLinksTakeLittleMemory(t *testing.T) {
	l := New(nil, Protocol{})
	if size := 127 * (l.R.Size() + l.w.Size()); size > 8<<20 {
		t.Errorf("127 links have buffers of %d bytes", size)
	}
}
