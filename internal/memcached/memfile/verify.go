package memfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	// soon is the number of seconds after which an item can have expired for memcached, but not for the scan before.
	soon = 2
	// Clients may change the number of items during a scan by so many, and by a share of 1 in so many.
	fewItems, uncounted = 16, 10
)

// Verify compares the file with what a running memcached says about its chunks
// and about a sample of its items. ErrLayout means that the file can't be read. Other
// clients may change items during the comparison.
func (f *File) Verify(ctx context.Context, server protocol.Server) error {
	listsKeys, err := f.verifySettings(ctx, server)
	if err != nil {
		return err
	}
	if !listsKeys {
		return f.verifyUnlisted(ctx, server)
	}
	sample, err := dumpSample(ctx, server)
	if err != nil {
		return err
	}
	size := len(sample)
	// A scan misses items that move to a page that it has already read.
	for range scans {
		s := scan{file: f}
		err := s.walk(func(int64, []byte) error {
			if cas, ok := sample[string(s.item.Key)]; ok && cas == s.item.CAS {
				delete(sample, string(s.item.Key))
			}
			return ctx.Err()
		})
		if err == nil {
			err = retain(ctx, server, sample, true)
		}
		if err != nil {
			return err
		}
		if len(sample)*tolerated <= size {
			return nil
		}
	}
	return fmt.Errorf("%w: it lacks %d of %d items", ErrLayout, len(sample), size)
}

// verifyUnlisted compares the file with a memcached that lists no keys. The sample is of the file, so only the number of
// items shows whether a scan misses some.
func (f *File) verifyUnlisted(ctx context.Context, server protocol.Server) error {
	var sample map[string]uint64
	var size, n, counted int
	for range scans {
		stats, err := server.QueryStats(ctx, "stats", "stats settings")
		if err != nil {
			return err
		}
		clock, err := clockOf(stats[0], stats[1], time.Now())
		if err != nil {
			return err
		}
		clock.Now += soon
		if clock.OldestLive != 0 {
			clock.OldestLive++ // some versions don't show OldestCAS
		}
		former, seen := sample, 0
		sample, n, counted = map[string]uint64{}, 0, int(protocol.ParseGeneral(stats[0]).Items)
		var keys []string // of a sample of all, each of which has the same chance
		s := scan{file: f, clock: clock}
		err = s.walk(func(int64, []byte) error {
			n++
			if s.skip {
				return ctx.Err()
			}
			if former != nil {
				// What clients have changed since differs in the file, too.
				if cas, ok := former[string(s.item.Key)]; ok && cas == s.item.CAS {
					sample[string(s.item.Key)] = cas
				}
				return ctx.Err()
			}
			seen++
			at := len(keys)
			if at < sampleSize {
				keys = append(keys, "")
			} else if at = rand.IntN(seen); at >= sampleSize {
				return ctx.Err()
			} else {
				delete(sample, keys[at])
			}
			keys[at] = string(s.item.Key)
			sample[keys[at]] = s.item.CAS
			return ctx.Err()
		})
		if former == nil {
			size = len(sample)
		}
		if err == nil {
			err = retain(ctx, server, sample, false)
		}
		if err != nil {
			return err
		}
		if len(sample)*tolerated <= size && counted-n <= fewItems+counted/uncounted {
			return nil
		}
	}
	return fmt.Errorf("%w: it has %d of %d items, and of %d items, %d are unknown to memcached", ErrLayout, n, counted, size, len(sample))
}

// verifySettings returns whether memcached lists its keys.
func (f *File) verifySettings(ctx context.Context, server protocol.Server) (listsKeys bool, err error) {
	stats, err := server.QueryStats(ctx, "stats settings", "stats slabs")
	if err != nil {
		return false, err
	}
	if size := stats[0]["client_flags_size"]; size != "" && size != "4" {
		return false, fmt.Errorf("%w: client flags have %s bytes", ErrLayout, size)
	}
	for name, value := range stats[1] {
		class, field, _ := strings.Cut(name, ":")
		if field != "chunk_size" {
			continue
		}
		n, err := strconv.Atoi(class)
		if err != nil || n < 1 || n >= len(f.layout.chunks) || strconv.Itoa(f.layout.chunks[n]) != value {
			return false, fmt.Errorf("%w: slab class %s has chunks of %s bytes", ErrLayout, class, value)
		}
	}
	return stats[0].ListsKeys(), nil
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

// retain leaves only those items that memcached has with the same CAS, or only those that it does not have so.
func retain(ctx context.Context, server protocol.Server, items map[string]uint64, unchanged bool) error {
	conn, err := server.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	r := bufio.NewReaderSize(conn, protocol.MaxLine)
	var request []byte
	for key, cas := range items {
		var ok bool
		if request, ok = protocol.AppendMetaGet(request[:0], []byte(key), " c u"); !ok {
			delete(items, key)
			continue
		}
		_, err := conn.Write(request)
		var head protocol.Head
		if err == nil {
			head, err = protocol.ReadHead(r)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case (head.Code == protocol.MetaHit && head.CAS == cas) != unchanged:
			delete(items, key)
		}
	}
	return nil
}
