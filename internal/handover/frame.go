package handover

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// protocolVersion is the version of the frames.
const protocolVersion = 2

type kind = peerlink.Kind

const (
	kindHello       kind = 'h' // target: hello, and later one with a grace period only
	kindOffer       kind = 'o' // source: offer
	kindPass        kind = 'p' // target: empty
	kindFollow      kind = 'w' // target: empty
	kindFinish      kind = 'f' // target: empty
	kindAsk         kind = 'q' // target: key hashes of 8 bytes
	kindItem        kind = 'i' // source: itemHead, key, value
	kindName        kind = 'n' // source: key
	kindRemoved     kind = 'g' // source: key hashes of 8 bytes
	kindState       kind = 's' // source: state, before the last done
	kindDone        kind = 'd' // source: done
	kindAcknowledge kind = 'a' // target: acknowledgement
	kindConfirm     kind = 'c' // source: confirmation
	kindError       kind = 'e' // source: failure
)

const (
	// maxMessage is the largest message in JSON, in bytes.
	maxMessage = 4 << 10
	// MaxState is the largest content of a state in bytes, maxStates how many there are at most.
	MaxState  = 4 << 10
	maxStates = 8
	// maxRemoved is the largest frame of key hashes, in bytes.
	maxRemoved = 8 << 10
	// itemHeadSize: one byte of the key's length, one of bits, four of flags, eight of when the item expires.
	itemHeadSize = 1 + 1 + 4 + 8
)

var frames = peerlink.Protocol{
	Limits: map[kind]uint32{
		kindPass: 0, kindFollow: 0, kindFinish: 0, kindRemoved: maxRemoved, kindAsk: maxRemoved, kindName: protocol.MaxKey,
		kindHello: maxMessage, kindOffer: maxMessage, kindDone: maxMessage, kindAcknowledge: maxMessage, kindConfirm: maxMessage, kindError: maxMessage,
		kindState: 2 * MaxState, // in base64
		kindItem:  itemHeadSize + protocol.MaxKey + protocol.MaxValue,
	},
	Failed: kindError,
	Errors: map[string]error{
		"NotTerminating": ErrNotStarted, // agents of release 1.0.0 know this code
		"Busy":           ErrBusy, "Impossible": ErrImpossible,
	},
	Patience: peerlink.StepTimeout, // memcached may have to stop, or its memory to be scanned
}

type hello struct {
	// Versions of the frames that the target knows.
	Versions          []int
	Pod, Shard, Owner string
	// Follow is whether the target wants to serve before the end.
	Follow bool
	// Requested is whether the target was requested to take over from a source whose pod is not being deleted.
	Requested bool
	// GraceSeconds is the grace period with which the source's pod is deleted, if that is shorter than its own.
	GraceSeconds int64
	// State is whether the target takes frames of that kind.
	State bool
}

// maxGrace is the longest grace period, so that sums are no overflow.
const maxGrace = 24 * time.Hour

// grace returns the grace period, 0 for none.
func (h hello) grace() time.Duration {
	return time.Duration(min(max(h.GraceSeconds, 0), int64(maxGrace/time.Second))) * time.Second
}

type offer struct {
	Version   int
	Pod       string
	Memcached string // its version
	Items     int64
	// Milliseconds until the end has to begin. Clocks of nodes differ.
	Milliseconds int64
	// Now is the source's time when it sends the offer, as when items expire: a Unix time in milliseconds.
	Now int64
	// Live reports whether the source has room for live passes.
	Live bool
	// Follow is whether the target may do so.
	Follow bool
	// Grace is whether the source accepts another hello.
	Grace bool
	// Seed of the key hashes.
	Seed uint64
}

// state is what the source's agent knows about the items.
type state struct {
	Name    string
	Content []byte
}

type done struct {
	// Items of the source, and how many of them were sent in this pass.
	Items, Sent int64
	// Removed is the number of key hashes that were sent.
	Removed int64
	// Complete is unset if the pass stopped early, since the end has to begin.
	Complete bool
	// Flushed is whether there was a flush_all since the pass before.
	Flushed bool
	// FlushesAt is when a flush_all with a delay deletes all items, like expires of an item.
	FlushesAt int64
	// Routed is whether new connections of clients reach the target, after a pass while both serve.
	Routed bool
}

type acknowledgement struct {
	Items, Rejected int64
}

type confirmation struct {
	Milliseconds int64 // since the source's memcached stopped
}

// received is an item whose value follows in the stream.
type received struct {
	key    []byte // valid until the next item
	binary bool
	flags  uint32
	// expires is a Unix time of the source in milliseconds; 0 for never.
	expires int64
	size    int // of the value
}

// bitBinary marks a key that was stored in base64.
const bitBinary = 1

// appendItem appends the head of an item's frame, up to its value.
func appendItem(dst []byte, item *memfile.Item) []byte {
	dst = peerlink.AppendHead(dst, kindItem, itemHeadSize+item.Size)
	var bits byte
	if item.Binary {
		bits |= bitBinary
	}
	dst = append(dst, byte(len(item.Key)), bits)
	dst = binary.BigEndian.AppendUint32(dst, item.Flags)
	var expires int64
	if !item.ExpiresAt.IsZero() {
		expires = item.ExpiresAt.UnixMilli()
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(expires))
	return append(dst, item.Key...)
}

// readItem reads the head of an item's frame of size bytes. key is its memory.
func readItem(r *bufio.Reader, size int, key *[protocol.MaxKey]byte) (item received, err error) {
	var head [itemHeadSize]byte
	if size < itemHeadSize {
		return item, fmt.Errorf("%w: an item of %d bytes", peerlink.ErrFrame, size)
	}
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return item, protocol.Unexpected(err)
	}
	length := int(head[0])
	item = received{
		key: key[:min(length, len(key))], binary: head[1]&bitBinary != 0, flags: binary.BigEndian.Uint32(head[2:]),
		expires: int64(binary.BigEndian.Uint64(head[6:])), size: size - itemHeadSize - length,
	}
	if length == 0 || length > len(key) || item.size < 0 || item.size > protocol.MaxValue {
		return item, fmt.Errorf("%w: a key of %d bytes in an item of %d", peerlink.ErrFrame, length, size)
	}
	if _, err := io.ReadFull(r, item.key); err != nil {
		return item, protocol.Unexpected(err)
	}
	return item, nil
}

// readName reads a frame of size bytes. key is its memory.
func readName(r *bufio.Reader, size int, key *[protocol.MaxKey]byte) ([]byte, error) {
	if size == 0 || size > len(key) {
		return nil, fmt.Errorf("%w: a key of %d bytes", peerlink.ErrFrame, size)
	}
	if _, err := io.ReadFull(r, key[:size]); err != nil {
		return nil, protocol.Unexpected(err)
	}
	return key[:size], nil
}

// readRemoved appends the key hashes of a frame of size bytes to dst.
func readRemoved(r *bufio.Reader, size int, dst []uint64) ([]uint64, error) {
	if size%8 != 0 {
		return dst, fmt.Errorf("%w: %d bytes of key hashes", peerlink.ErrFrame, size)
	}
	for ; size > 0; size -= 8 {
		var hash [8]byte
		if _, err := io.ReadFull(r, hash[:]); err != nil {
			return dst, protocol.Unexpected(err)
		}
		dst = append(dst, binary.BigEndian.Uint64(hash[:]))
	}
	return dst, nil
}
