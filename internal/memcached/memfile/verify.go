package memfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// sampleSize is the number of items that Verify compares. A dump of the hash table is in a
	// random order, so its first items are a sample of all.
	sampleSize = 4000
	// tolerated is the share of them, 1 in so many, that may differ.
	tolerated = 1000
	// scans is the number of times that it looks for them.
	scans = 3
	// dumpTimeout bounds each answer of a dump.
	dumpTimeout = 10 * time.Second
)

// Verify compares the file with what a running memcached says about its chunks
// and about a sample of its items. ErrLayout means that the file can't be read. Other
// clients may change items during the comparison.
func (f *File) Verify(ctx context.Context, server protocol.Server) error {
	if err := f.verifySettings(ctx, server); err != nil {
		return err
	}
	sample, err := dumpSample(ctx, server)
	if err != nil {
		return err
	}
	size, wrong := len(sample), 0
	// A scan misses items that move to a page that it has already read.
	for range scans {
		s := scan{file: f, headersOnly: true}
		err := s.walk(func(int64, []byte) error {
			if cas, ok := sample[string(s.item.Key)]; ok && cas == s.item.CAS {
				delete(sample, string(s.item.Key))
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		if wrong, err = countUnchanged(ctx, server, sample); err != nil {
			return err
		}
		if wrong*tolerated <= size {
			return nil
		}
	}
	return fmt.Errorf("%w: it lacks %d of %d items", ErrLayout, wrong, size)
}

func (f *File) verifySettings(ctx context.Context, server protocol.Server) error {
	stats, err := server.QueryStats(ctx, "stats settings", "stats slabs")
	if err != nil {
		return err
	}
	if size := stats[0]["client_flags_size"]; size != "" && size != "4" {
		return fmt.Errorf("%w: client flags have %s bytes", ErrLayout, size)
	}
	for name, value := range stats[1] {
		class, field, _ := strings.Cut(name, ":")
		if field != "chunk_size" {
			continue
		}
		n, err := strconv.Atoi(class)
		if err != nil || n < 1 || n >= len(f.layout.chunks) || strconv.Itoa(f.layout.chunks[n]) != value {
			return fmt.Errorf("%w: slab class %s has chunks of %s bytes", ErrLayout, class, value)
		}
	}
	return nil
}

// errSampled stops a dump.
var errSampled = errors.New("the sample is complete")

// dumpSample returns the CAS of the first items of a dump.
func dumpSample(ctx context.Context, server protocol.Server) (map[string]uint64, error) {
	sample := map[string]uint64{}
	err := server.Dump(ctx, dumpTimeout, func(item protocol.Listed) error {
		if len(sample) == sampleSize {
			return errSampled
		}
		sample[string(item.Key)] = item.CAS
		return nil
	})
	if errors.Is(err, errSampled) {
		err = nil
	}
	return sample, err
}

// countUnchanged returns how many of these items memcached still has with the same CAS.
func countUnchanged(ctx context.Context, server protocol.Server, items map[string]uint64) (n int, err error) {
	conn, err := server.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	r := bufio.NewReaderSize(conn, protocol.MaxLine)
	var request []byte
	for key, cas := range items {
		var ok bool
		if request, ok = protocol.AppendMetaGet(request[:0], []byte(key), " c u"); !ok {
			continue
		}
		_, err := conn.Write(request)
		var head protocol.Head
		if err == nil {
			head, err = protocol.ReadHead(r)
		}
		switch {
		case ctx.Err() != nil:
			return n, context.Cause(ctx)
		case err != nil:
			return n, err
		case head.Code == protocol.MetaHit && head.CAS == cas:
			n++
		}
	}
	return n, nil
}
