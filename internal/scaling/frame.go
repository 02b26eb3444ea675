package scaling

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

const (
	// protocolVersion is the version of the frames.
	protocolVersion = 1
	purpose         = "memcached-operator scaling 1 ed25519"
)

const (
	kindHello  peerlink.Kind = 'h' // target: hello
	kindOffer  peerlink.Kind = 'o' // source: offer
	kindLost   peerlink.Kind = 'l' // target: key hashes, before a sweep
	kindSweep  peerlink.Kind = 's' // target: sweep
	kindShown  peerlink.Kind = 'k' // source: entries of what it has
	kindName   peerlink.Kind = 'n' // source: the key of such a hash
	kindItem   peerlink.Kind = 'i' // both: itemHead, key, value
	kindNone   peerlink.Kind = 'm' // source: empty, in place of an item
	kindDone   peerlink.Kind = 'd' // source: done
	kindAsk    peerlink.Kind = 'q' // target: names; the source answers with an item or none for each
	kindDrop   peerlink.Kind = 'x' // target: names, which the source deletes
	kindApply  peerlink.Kind = 'a' // target: empty, after items that the source stores
	kindStored peerlink.Kind = 'r' // source: their new CASes, 0 for what it did not store
	kindPurge  peerlink.Kind = 'p' // target: empty; the source deletes its moved keys
	kindFailed peerlink.Kind = 'e' // source: failure
)

const (
	// maxHello has the names of all servers, maxMessage is the largest other message in JSON, maxList the largest list, in bytes.
	maxHello, maxMessage, maxList = 256 << 10, 4 << 10, 64 << 10
	// maxValue is the largest value that moves, in bytes. Larger ones stay with the source until the close, like keys without a pair.
	maxValue = 4 << 20
	// entrySize: eight bytes of the hash, eight of the CAS, four of the expiry.
	entrySize = 8 + 8 + 4
	// itemHeadSize: one byte of the key's length, one of bits, four of flags, four of the expiry, eight of the CAS.
	itemHeadSize = 1 + 1 + 4 + 4 + 8
	bitBinary    = 1
)

var frames = peerlink.Protocol{Limit: limitOf, Failed: kindFailed, Failure: func(r *bufio.Reader, size int) error {
	f, err := peerlink.ReadMessage[failure](r, size)
	if err != nil {
		return err
	}
	return f.err()
}}

func limitOf(k peerlink.Kind) (uint32, bool) {
	switch k {
	case peerlink.KindBeat, kindNone, kindApply, kindPurge:
		return 0, true
	case kindHello:
		return maxHello, true
	case kindOffer, kindSweep, kindDone, kindFailed:
		return maxMessage, true
	case kindLost, kindShown, kindAsk, kindDrop, kindStored:
		return maxList, true
	case kindName:
		return protocol.MaxKey, true
	case kindItem:
		return itemHeadSize + protocol.MaxKey + maxValue, true
	}
	return 0, false
}

type hello struct {
	Versions []int
	Owner    string
	// Source and Target are ordinals.
	Source, Target int
	Ring           string
	From, To       []string
	// Verify is whether the source must verify the ring.
	Verify bool
	// Seed of the key hashes.
	Seed uint64
}

type offer struct {
	Version int
	// Run identifies the process of the source's memcached.
	Run string
	// Moved is the number of moved items, CAS the highest one of any item.
	Moved int64
	CAS   uint64
	// Now is memcached's clock in milliseconds.
	Now int64
}

type sweep struct {
	// Send is whether items come with their values whose CAS is higher than Since.
	Send  bool
	Since uint64
}

type done struct {
	// Items that were shown, or purged.
	Items int64
	// CAS is the highest one that the scan found, of any item.
	CAS uint64
	// Flushes counts each flush_all.
	Flushes string
	// Now is memcached's clock in milliseconds.
	Now int64
}

type failure struct{ Code, Message string }

var codes = map[string]error{"Unproven": ErrUnproven, "Impossible": ErrImpossible}

func failureOf(err error) failure {
	f := failure{Code: "Failed", Message: err.Error()}
	for code, of := range codes {
		if errors.Is(err, of) {
			f = failure{code, strings.TrimPrefix(f.Message, of.Error()+": ")}
		}
	}
	f.Message = f.Message[:min(len(f.Message), maxMessage/8)] // a control character has six bytes as JSON
	return f
}

func (f failure) err() error {
	if err, ok := codes[f.Code]; ok {
		return fmt.Errorf("%w: %s", err, f.Message)
	}
	return fmt.Errorf("the source failed: %q", f.Message)
}

// item is an item on the wire.
type item struct {
	key    []byte
	binary bool
	flags  uint32
	// expires is in seconds of the clock of the source's memcached; 0 for never.
	expires uint32
	// cas is that of the source's item: with which it was read, or which it must still have.
	cas   uint64
	value []byte
}

func (i *item) append(dst []byte) []byte {
	dst = peerlink.AppendHead(dst, kindItem, itemHeadSize+len(i.key)+len(i.value))
	var bits byte
	if i.binary {
		bits |= bitBinary
	}
	dst = binary.BigEndian.AppendUint32(append(dst, byte(len(i.key)), bits), i.flags)
	dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(dst, i.expires), i.cas)
	return append(dst, i.key...)
}

// readItem reads an item's frame of size bytes. buffer is the memory of its key and its value, and may be replaced.
func readItem(r *bufio.Reader, size int, buffer *[]byte) (i item, err error) {
	text, err := readFrame(r, size, buffer)
	if err != nil {
		return i, err
	}
	if size < itemHeadSize || int(text[0]) == 0 || int(text[0]) > min(size-itemHeadSize, protocol.MaxKey) {
		return i, fmt.Errorf("%w: an item of %d bytes", peerlink.ErrFrame, size)
	}
	end := itemHeadSize + int(text[0])
	return item{key: text[itemHeadSize:end:end], binary: text[1]&bitBinary != 0, flags: binary.BigEndian.Uint32(text[2:]),
		expires: binary.BigEndian.Uint32(text[6:]), cas: binary.BigEndian.Uint64(text[10:]), value: text[end:]}, nil
}

func readFrame(r *bufio.Reader, size int, buffer *[]byte) ([]byte, error) {
	text, err := protocol.ReadPart(r, (*buffer)[:0], size)
	*buffer = text
	return text, peerlink.InFrame(err)
}

func appendEntry(dst []byte, hash uint64, item *memfile.Item) []byte {
	dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, hash), item.CAS)
	return binary.BigEndian.AppendUint32(dst, item.Expires)
}

func appendName(dst, key []byte) []byte { return append(append(dst, byte(len(key))), key...) }

// eachName visits the names of a list.
func eachName(list []byte, visit func(key []byte) error) error {
	for len(list) > 0 {
		end := 1 + int(list[0])
		if end == 1 || end > len(list) || end > 1+protocol.MaxKey {
			return fmt.Errorf("%w: a list with a key of %d bytes", peerlink.ErrFrame, end-1)
		}
		if err := visit(list[1:end:end]); err != nil {
			return err
		}
		list = list[end:]
	}
	return nil
}

// eachHash visits the numbers of a list.
func eachHash(list []byte, visit func(uint64)) error {
	if len(list)%8 != 0 {
		return fmt.Errorf("%w: %d bytes of numbers", peerlink.ErrFrame, len(list))
	}
	for ; len(list) > 0; list = list[8:] {
		visit(binary.BigEndian.Uint64(list))
	}
	return nil
}
