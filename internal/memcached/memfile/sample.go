package memfile

import (
	"encoding/binary"
	"math/rand/v2"
)

// Sampled is an item at one of the places that Sample reads.
type Sampled struct {
	// LastAccess is the last access that memcached has recorded, in seconds of its own clock.
	LastAccess uint32
	// Fetched is whether a client has read the item since it was stored. If none has, LastAccess
	// is when it was stored. Otherwise it may be older than the last read: memcached doesn't
	// record the first read, nor those of an item that it has marked as active.
	Fetched bool
	// CAS is 0 for a memcached with -C.
	CAS uint64
	// Active means that memcached doesn't record further reads for now.
	Active bool
	// Expires is in seconds of memcached's clock, 0 if the item never does.
	Expires uint32
	// Items is the number of items for which it stands.
	Items float64
	// Bytes is the memory for which the item stands. Their sum estimates the memory of the
	// chunks that contain items.
	Bytes int64
}

// Sample visits the items at random places of the file, one in each of so many parts of the
// same size. base is the address at which memcached has mapped the file; without it, 0, items
// in more than one chunk count as unreadable.
func (f *File) Sample(clock Clock, base uint64, places int, visit func(Sampled)) (Report, error) {
	report := Report{OldestLive: clock.OldestLive}
	size, parts := f.layout.size, int64(places)
	bytes := size / parts
	buffer := make([]byte, 2*headLength)
	page, chunk := buffer[:headLength], buffer[headLength:]
	for part := range parts {
		from, to := part*size/parts, (part+1)*size/parts
		place := from + rand.Int64N(max(to-from, 1))
		start := place / pageSize * pageSize
		if err := f.readAt(page, start); err != nil {
			return report, err
		}
		class, ok := f.layout.classOf(page, start)
		if !ok {
			report.Unreadable++
			continue
		}
		if class == 0 {
			continue
		}
		length := int64(f.layout.chunks[class])
		at := start + (place-start)/length*length
		if at+length > start+pageSize {
			continue // too small for a chunk
		}
		chunk := chunk[:min(length, headLength)]
		if err := f.readAt(chunk, at); err != nil {
			return report, err
		}
		if flagsOf(chunk) == flagChunk {
			head := int64(binary.NativeEndian.Uint64(chunk[atHead:]) - base)
			if base == 0 || head < 0 || head > size-headLength {
				report.Unreadable++
				continue
			}
			if err := f.readAt(chunk, head); err != nil {
				return report, err
			}
			if flagsOf(chunk)&flagChunked == 0 {
				continue // deleted
			}
		}
		f.sampled(chunk, clock, bytes, length, visit, &report)
	}
	return report, nil
}

// sampled visits the item whose header is at the start of a chunk of a size.
func (f *File) sampled(chunk []byte, clock Clock, bytes, size int64, visit func(Sampled), report *Report) {
	flags := flagsOf(chunk)
	if flags&flagLinked == 0 {
		return
	}
	item := Item{LastAccess: number(chunk, atTime), Expires: number(chunk, atExpiry)}
	length := int(int32(number(chunk, atLength)))
	if flags&(flagSlabbed|flagChunk|flagsUnknown) != 0 || chunk[atKeyLen] == 0 ||
		length < 2 || length > f.layout.itemMax || item.LastAccess > clock.Now+1 {
		report.Unreadable++
		return
	}
	if flags&flagCAS != 0 && len(chunk) >= headerSize+8 {
		item.CAS = binary.NativeEndian.Uint64(chunk[headerSize:])
	}
	if clock.isExpiredOrFlushed(&item) {
		report.Skipped++
		return
	}
	report.Items++
	visit(Sampled{LastAccess: item.LastAccess, Fetched: flags&flagFetched != 0, Active: flags&flagActive != 0, Expires: item.Expires,
		CAS: item.CAS, Items: float64(bytes) / float64(max(int64(length), size)), Bytes: bytes})
}
