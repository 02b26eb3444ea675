// Package memfile reads the items in the memory file (-e) of memcached, while memcached
// runs or after it has saved them and exited.
//
// The file is memcached's own memory: pages of 1 MiB, each divided into chunks of the size
// of its slab class. Sources: item and item_chunk in memcached.h, slabs.c, restart.c. They
// are equal in 1.6.18, 1.6.38 and 1.6.45. Verify checks that a running memcached is too.
//
// # Rules
//
// The file is read, and not mapped into memory: a page that memcached has not used yet
// stays unallocated, a file that shrinks is an error instead of a signal, and what visit
// sees is a copy that doesn't change under it. A value in more than one chunk is copied in
// parts, when they are visited.
//
// Nothing in the file is trusted. memcached may change it at any time, so that a scan can
// see a part of an item before and the other part after a change, miss an item that moves,
// or see one twice. Only a scan after memcached has saved is exact.
//
// These items are omitted because memcached doesn't return them, or because a copy would
// not behave as they do: expired, flushed and stale ones, those in extstore, and the empty
// values that "mg N" creates for a client that is about to store the real one.
package memfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// Item is one item of the file. It is valid until visit returns.
type Item struct {
	Key []byte
	// Value is without the trailing \r\n. EachPart reads that of an item in more than one chunk, which can be larger than an agent's memory.
	Value []byte
	// Size is that of the key and the value in bytes.
	Size  int
	Flags uint32
	// ExpiresAt is when the item expires; the zero time if it doesn't.
	ExpiresAt time.Time
	// Expires and LastAccess are in seconds of memcached's own clock. Expires is 0 if an item doesn't expire.
	Expires, LastAccess uint32
	// AccessedAt is when the last access was that memcached has recorded, Fetched whether a client has read the item
	// since it was stored: see Sampled.
	AccessedAt time.Time
	Fetched    bool
	// CAS is 0 for a memcached with -C.
	CAS uint64
	// Binary is whether the client sent the key in base64, with the flag b of the meta commands.
	// memcached returns it so.
	Binary bool

	// scan is nil for an item in one chunk. offset is where the item is, first what it has of the chain of its chunks.
	scan   *scan
	offset int64
	first  firstChunk
}

// Report counts what a scan found.
type Report struct {
	Items int64
	// Skipped is the number of items that were omitted: expired, flushed, stale.
	Skipped int64
	// Unreadable is the number of items and pages that don't have the expected layout, as while
	// memcached changes them.
	Unreadable int64
	// OldestLive is that of the clock: it changes with each flush_all.
	OldestLive uint32
	// FlushesAt is when a flush_all with a delay deletes all items, a Unix time in milliseconds; 0 without one.
	FlushesAt int64
}

var (
	// ErrLayout is a file that this package can't read.
	ErrLayout = errors.New("the memory file has an unknown layout")
	// ErrTorn is an item that memcached changes while its value is read.
	ErrTorn = errors.New("memcached has changed the item")
)

// Offsets and sizes in bytes.
const (
	pageSize   = 1 << 20
	headerSize = 48 // of both structures

	// item, and item_chunk, where the name differs
	atNext   = 0
	atHead   = 16 // item_chunk
	atTime   = 24
	atExpiry = 28
	atUsed   = 28 // item_chunk
	atLength = 32
	atFlags  = 38
	atClass  = 40
	atKeyLen = 41
	atOrigin = 41 // item_chunk: the class of an item's first chunk, in which atClass is of the whole item
	atData   = 42 // item_chunk
)

// Flags of items.
const (
	flagLinked    = 1
	flagCAS       = 2
	flagSlabbed   = 4 // a free chunk
	flagFetched   = 8
	flagActive    = 16
	flagChunked   = 32
	flagChunk     = 64
	flagExtstore  = 128
	flagClient    = 256
	flagTokenSent = 512
	flagStale     = 2048
	flagBinary    = 4096
	flagsUnknown  = 0xe000
)

// classBits are those of the slab class; the others are of the LRU.
const classBits = 63

// Layout is what the arguments of memcached decide about its memory file.
type Layout struct {
	size    int64
	itemMax int
	chunks  []int // sizes by slab class, class 0 is unused memory
}

// LayoutOf returns the layout for these arguments. ErrLayout means that there is no file
// or that it can't be read.
func LayoutOf(arguments []string, version string) (Layout, error) {
	g := slab.Of(arguments, version)
	if g.Extstore {
		return Layout{}, fmt.Errorf("%w with extstore (-o ext_path)", ErrLayout)
	}
	if !g.SlabReassign && g.SlabChunkMax == g.SlabPage {
		// do_slabs_newslab: the pages of each class have a length of their own.
		return Layout{}, fmt.Errorf("%w with -o no_modern, or with both no_slab_reassign and no_chunked_items", ErrLayout)
	}
	l := Layout{size: g.MaxBytes, itemMax: int(g.ItemSizeMax), chunks: []int{0}}
	for _, size := range g.ChunkSizes() {
		if size <= int64(max(l.chunks[len(l.chunks)-1], headerSize)) || size > pageSize {
			return Layout{}, fmt.Errorf("%w with chunks of %d bytes", ErrLayout, size)
		}
		l.chunks = append(l.chunks, int(size))
	}
	return l, nil
}

// File is an open memory file. Its methods may run at the same time.
type File struct {
	reader io.ReaderAt
	io.Closer
	layout Layout
	// Which, if any, is called for each item, in each pass, also directly before a visit: the scans visit and count those for which it
	// returns true.
	Which func(*Item) bool
}

// Open opens the memory file of a memcached that runs, or that has saved its items.
func Open(path string, layout Layout) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && (info.Size() != layout.size || layout.size == 0 || layout.size%pageSize != 0) {
		err = fmt.Errorf("%w: its size is %d instead of %d bytes", ErrLayout, info.Size(), layout.size)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &File{reader: file, Closer: file, layout: layout}, nil
}

// Scan visits all items in the order in which they are in memory. An error of visit ends
// the scan and is returned as it is.
func (f *File) Scan(clock Clock, visit func(*Item) error) (Report, error) {
	s := scan{file: f, clock: clock}
	err := s.walk(func(int64, []byte) error { return s.visit(visit) })
	return s.report, err
}

// OrderBytes is the memory that ScanColdFirst and ScanHotFirst take for each item that they visit.
const OrderBytes = 8

// ScanColdFirst visits all items, those that were not accessed for the longest time first.
func (f *File) ScanColdFirst(clock Clock, visit func(*Item) error) (Report, error) {
	return f.scanByAccess(clock, func([]uint64) {}, visit)
}

// ScanHotFirst visits all items, those that were accessed last first.
func (f *File) ScanHotFirst(clock Clock, visit func(*Item) error) (Report, error) {
	return f.scanByAccess(clock, slices.Reverse[[]uint64], visit)
}

// scanByAccess visits all items in the order that arrange makes of the cold first.
func (f *File) scanByAccess(clock Clock, arrange func([]uint64), visit func(*Item) error) (Report, error) {
	const (
		// Of an entry: seconds of memcached's clock, page, chunk in it.
		timeBits, pageBits, chunkBits = 29, 20, 15
		latest                        = 1<<timeBits - 1
	)
	if f.layout.size/pageSize > 1<<pageBits || pageSize/f.layout.chunks[1] > 1<<chunkBits {
		return f.Scan(clock, visit)
	}
	most, err := f.mostItems()
	if err != nil {
		return Report{}, err
	}
	entries := make([]uint64, 0, most) // what is never written takes no memory
	classes := make([]uint8, f.layout.size/pageSize)
	first := scan{file: f, clock: clock}
	err = first.walk(func(offset int64, chunk []byte) error {
		if first.skip {
			first.report.Skipped++
			return nil
		}
		page, size := offset/pageSize, int64(len(chunk))
		classes[page] = uint8(first.class)
		at := uint64(min(first.item.LastAccess, latest))
		entries = append(entries, at<<(pageBits+chunkBits)|uint64(page)<<chunkBits|uint64(offset%pageSize/size))
		return nil
	})
	if err != nil {
		return first.report, err
	}
	slices.Sort(entries)
	arrange(entries)
	s := scan{file: f, clock: clock, report: first.report}
	chunk := make([]byte, pageSize)
	for _, entry := range entries {
		page := int64(entry >> chunkBits & (1<<pageBits - 1))
		class := int(classes[page])
		size := f.layout.chunks[class]
		offset := page*pageSize + int64(entry&(1<<chunkBits-1))*int64(size)
		if err := f.readAt(chunk[:size], offset); err != nil {
			return s.report, err
		}
		if s.read(chunk[:size], offset, class) {
			if err := s.visit(visit); err != nil {
				return s.report, err
			}
		}
	}
	return s.report, nil
}

// mostItems returns how many items the used pages can hold.
func (f *File) mostItems() (n int, err error) {
	head := make([]byte, headLength)
	for offset := int64(0); offset < f.layout.size; offset += pageSize {
		if err := f.readAt(head, offset); err != nil {
			return 0, err
		}
		if class, ok := f.layout.classOf(head, offset); ok && class != 0 {
			n += pageSize / f.layout.chunks[class]
		}
	}
	return n, nil
}

func (f *File) readAt(dst []byte, offset int64) error {
	_, err := f.reader.ReadAt(dst, offset)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it has become shorter", ErrLayout)
	}
	return err
}

// scan is one pass over a file. Its fields after report are of the current item.
type scan struct {
	file   *File
	clock  Clock
	report Report

	item  Item
	class int
	// skip is whether the item must be omitted.
	skip bool
	// part is of the value of an item in more than one chunk.
	part []byte
}

func (s *scan) visit(visit func(*Item) error) error {
	if s.skip {
		s.report.Skipped++
		return nil
	}
	s.report.Items++
	return visit(&s.item)
}

// headLength is enough for the header of an item in more than one chunk.
const headLength = 512

// walk calls found for each item, after it has read it.
func (s *scan) walk(found func(offset int64, chunk []byte) error) error {
	if s.report.OldestLive = s.clock.OldestLive; s.clock.OldestLive > s.clock.Now {
		s.report.FlushesAt = s.clock.At(s.clock.OldestLive + 1).UnixMilli()
	}
	page := make([]byte, pageSize)
	for offset := int64(0); offset < s.file.layout.size; offset += pageSize {
		// Only the head of an unused page is certain to be allocated.
		if err := s.file.readAt(page[:headLength], offset); err != nil {
			return err
		}
		if page[atClass]&classBits == 0 {
			continue
		}
		if err := s.file.readAt(page, offset); err != nil {
			return err
		}
		class, ok := s.file.layout.classOf(page, offset)
		if !ok {
			s.report.Unreadable++
			continue
		}
		if class == 0 {
			continue
		}
		size := s.file.layout.chunks[class]
		for at := 0; at+size <= pageSize; at += size {
			chunk := page[at : at+size : at+size]
			if s.read(chunk, offset+int64(at), class) {
				if err := found(offset+int64(at), chunk); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// classOf returns the slab class of the page that starts with head.
func (l Layout) classOf(head []byte, offset int64) (class int, ok bool) {
	class = int(head[atClass] & classBits)
	if flags := flagsOf(head); flags&flagChunked != 0 && flags&flagSlabbed == 0 {
		first, ok := l.firstChunk(head, offset)
		if !ok {
			return 0, false
		}
		class = first.class
	}
	return class, class < len(l.chunks)
}

// firstChunk is the item_chunk within the chunk of an item. It has no data.
type firstChunk struct {
	class int
	// base is the address at which memcached has, or had, the file in its memory.
	base, next uint64
}

func (l Layout) firstChunk(chunk []byte, offset int64) (firstChunk, bool) {
	at := dataOf(chunk)
	// Aligned, for some processors and for cross compilers (NEED_ALIGN).
	for _, at := range []int{at, (at + 7) / 8 * 8} {
		if at+headerSize > len(chunk) {
			continue
		}
		first := firstChunk{
			class: int(chunk[at+atOrigin]),
			base:  binary.NativeEndian.Uint64(chunk[at+atHead:]) - uint64(offset),
			next:  binary.NativeEndian.Uint64(chunk[at+atNext:]),
		}
		if first.class > 0 && first.class < len(l.chunks) && first.base%4096 == 0 {
			return first, true
		}
	}
	return firstChunk{}, false
}

// dataOf returns where the data of an item starts.
func dataOf(chunk []byte) int {
	at := headerSize + int(chunk[atKeyLen]) + 1
	if flagsOf(chunk)&flagCAS != 0 {
		at += 8
	}
	if flagsOf(chunk)&flagClient != 0 {
		at += 4
	}
	return at
}

func flagsOf(chunk []byte) uint16        { return binary.NativeEndian.Uint16(chunk[atFlags:]) }
func number(chunk []byte, at int) uint32 { return binary.NativeEndian.Uint32(chunk[at:]) }

// read reads the item in a chunk and returns whether there is one.
func (s *scan) read(chunk []byte, offset int64, class int) bool {
	flags := flagsOf(chunk)
	if flags&flagLinked == 0 {
		return false
	}
	if !s.parse(chunk, offset, class, flags) {
		s.report.Unreadable++
		return false
	}
	return s.skip || s.file.Which == nil || s.file.Which(&s.item)
}

func (s *scan) parse(chunk []byte, offset int64, class int, flags uint16) bool {
	keyLength, length := int(chunk[atKeyLen]), int(int32(number(chunk, atLength)))
	data := dataOf(chunk)
	if flags&(flagSlabbed|flagChunk|flagsUnknown) != 0 || keyLength == 0 || keyLength > protocol.MaxKey ||
		length < 2 || length > s.file.layout.itemMax || data > len(chunk) {
		return false
	}
	s.class = class
	s.item = Item{
		Size:       keyLength + length - len(lineEnd),
		LastAccess: number(chunk, atTime),
		Expires:    number(chunk, atExpiry),
		Binary:     flags&flagBinary != 0,
		Fetched:    flags&flagFetched != 0,
	}
	s.item.AccessedAt = s.clock.At(s.item.LastAccess)
	at := headerSize
	if flags&flagCAS != 0 {
		s.item.CAS = binary.NativeEndian.Uint64(chunk[at:])
		at += 8
	}
	s.item.Key = chunk[at : at+keyLength : at+keyLength]
	if flags&flagClient != 0 {
		s.item.Flags = number(chunk, data-4)
	}
	s.skip = s.clock.isExpiredOrFlushed(&s.item) || flags&(flagStale|flagExtstore) != 0 || flags&flagTokenSent != 0 && length == len(lineEnd)
	if s.item.Expires != 0 {
		s.item.ExpiresAt = s.clock.At(s.item.Expires)
	}
	switch {
	case flags&flagExtstore != 0:
		return true
	case flags&flagChunked != 0:
		first, ok := s.file.layout.firstChunk(chunk, offset)
		s.item.scan, s.item.offset, s.item.first = s, offset, first
		return ok && first.class == class
	case int(chunk[atClass]&classBits) != class || data+length > len(chunk):
		return false
	}
	end := data + length - len(lineEnd)
	s.item.Value = chunk[data:end:end]
	return string(chunk[end:data+length]) == lineEnd
}

const lineEnd = "\r\n"

// maxPart is how much of a value is read at a time, in bytes.
const maxPart = 64 << 10

// EachPart visits the parts of the value, which have its size together also with ErrTorn: the rest are zeros then.
func (i *Item) EachPart(visit func([]byte) error) error {
	if i.scan == nil {
		return visit(i.Value)
	}
	left := i.Size - len(i.Key)
	err := i.eachPart(func(part []byte) error {
		left -= len(part)
		return visit(part)
	})
	for errors.Is(err, ErrTorn) && left > 0 {
		zeros := i.scan.part[:min(left, maxPart)]
		clear(zeros)
		if failed := visit(zeros); failed != nil {
			return failed
		}
		left -= len(zeros)
	}
	return err
}

// eachPart visits the parts that can be read of a value in more than one chunk.
func (i *Item) eachPart(visit func([]byte) error) error {
	f, size := i.scan.file, i.Size-len(i.Key)
	if i.scan.part == nil {
		i.scan.part = make([]byte, maxPart)
	}
	at, next, head := 0, i.first.next, make([]byte, headerSize)
	// A chunk without data is possible, a cycle is not.
	for chunks := size/(f.layout.chunks[1]-atData) + 16; at < size+len(lineEnd); chunks-- {
		chunk := int64(next - i.first.base)
		if chunks == 0 || f.readAt(head, chunk) != nil {
			return ErrTorn
		}
		used := int(int32(number(head, atUsed)))
		if binary.NativeEndian.Uint64(head[atHead:]) != i.first.base+uint64(i.offset) || flagsOf(head) != flagChunk ||
			used < 0 || used > size+len(lineEnd)-at {
			return ErrTorn
		}
		for data := chunk + atData; used > 0; {
			part := i.scan.part[:min(used, maxPart)]
			if f.readAt(part, data) != nil {
				return ErrTorn
			}
			value := part[:min(max(size-at, 0), len(part))]
			if end := part[len(value):]; len(end) > 0 && string(end) != lineEnd[at+len(value)-size:][:len(end)] {
				return ErrTorn
			}
			if err := visit(value); err != nil {
				return err
			}
			at, used, data = at+len(part), used-len(part), data+int64(len(part))
		}
		next = binary.NativeEndian.Uint64(head[atNext:])
	}
	return nil
}
