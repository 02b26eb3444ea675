package snapshot

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

const (
	// sampleSize is how many keys tell whether a server kept its items.
	sampleSize = 64
	// longLived in seconds is how long a key of a sample is to live at least, or it
	// may be gone by itself.
	longLived = 5 * 60
)

// sample is some keys that a server has.
type sample struct {
	keys [sampleSize][]byte
	n    int
}

// anyOf takes a key so that each that was seen is in the sample with equal chance.
func (s *sample) anyOf(key []byte) {
	at := s.n
	if at >= sampleSize {
		at = rand.IntN(s.n + 1)
	}
	s.n++
	if at < sampleSize {
		s.keys[at] = append(s.keys[at][:0], key...)
	}
}

// latest takes a key in place of the one that was taken first.
func (s *sample) latest(key []byte) {
	at := s.n % sampleSize
	s.n++
	s.keys[at] = append(s.keys[at][:0], key...)
}

// keptBy asks a server for the keys, and returns errLost when more than half are gone.
// memcached evicts and clients delete: some are always missing.
func (s *sample) keptBy(conn net.Conn, r *bufio.Reader) error {
	if err := conn.SetDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	defer func() { _ = conn.SetDeadline(time.Time{}) }() // the next use tells
	var text []byte
	asked := 0
	for _, key := range s.keys {
		var ok bool
		if len(key) == 0 {
			continue
		}
		if text, ok = memcache.AppendMetaGet(text, key, " u"); ok {
			asked++
		}
	}
	if _, err := conn.Write(text); err != nil {
		return err
	}
	kept := 0
	for range asked {
		head, err := memcache.ReadHead(r)
		if err != nil {
			return err
		}
		if head.Code == memcache.MetaHit {
			kept++
		}
	}
	if kept*2 < asked {
		return fmt.Errorf("%w: of %d keys that it had, it has %d", errLost, asked, kept)
	}
	return nil
}
