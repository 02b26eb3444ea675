package copy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// sampleSize is the number of keys in each half of a sample.
	sampleSize = 64
	// minTTL in seconds is how long a key of the sample lives at least; others may
	// expire while the shard restarts.
	minTTL = 5 * 60
	// hitsPerSample is how many hits replace one key of the sample.
	hitsPerSample = 16
)

// errLost is a shard that no longer has its items.
var errLost = errors.New("a sample of its keys is missing")

// lossDetector is a sample of the keys that a shard has: the keys that were copied first and
// the keys that were copied last. A full cache may have evicted either kind, but
// not both: the first keys are the most recently used, the last keys existed a moment ago.
type lossDetector struct {
	keys [2 * sampleSize]sampledKey
	// listed counts the calls of addUniformly, copied those of add.
	listed, copied int
	// storedOn is Clock.Started of the server on which the last key was stored, and storedAt when; 0 if keys are only read.
	storedOn int64
	storedAt time.Time
}

type sampledKey struct {
	key []byte
	// expires is when the key expires, in Unix time of the server; 0 means never.
	expires int64
}

// addUniformly adds a key that is not copied yet. Each listed key has the
// same chance to be in the sample.
func (d *lossDetector) addUniformly(key []byte, expires int64) {
	at := d.listed
	if at >= sampleSize {
		at = rand.IntN(d.listed + 1)
	}
	d.listed++
	if at < sampleSize {
		d.set(at, key, expires)
	}
}

// add adds a key that was copied. At first, the copied keys replace the keys of addUniformly. Then each one
// replaces the oldest of the last copied keys.
func (d *lossDetector) add(key []byte, expires int64) {
	at := d.copied
	if at >= sampleSize {
		at = sampleSize + at%sampleSize
	}
	d.copied++
	d.set(at, key, expires)
}

func (d *lossDetector) set(at int, key []byte, expires int64) {
	d.keys[at] = sampledKey{append(d.keys[at].key[:0], key...), expires}
}

// check returns errLost if a shard lacks more than half of the keys that live. Some are
// always missing, since memcached evicts and clients delete. It invalidates stale items again that memcached requested it to
// renew, as no client would get that request.
func (d *lossDetector) check(c *conn) error {
	var text []byte
	var requested, won [][]byte
	keys := d.keys[:]
	if d.storedOn != 0 && d.storedOn != c.clock.Started && d.copied >= 2*sampleSize && time.Since(d.storedAt) < minTTL*time.Second {
		// This one has taken over. In mode Available, it lacks what the former one stored while both served. Later, a full cache may have
		// evicted these keys.
		keys = keys[sampleSize:]
	}
	for _, k := range keys {
		var ok bool
		if len(k.key) == 0 || k.expires != 0 && k.expires <= c.time+expiryTolerance {
			continue
		}
		if text, ok = protocol.AppendMetaGet(text, k.key, " u"); ok {
			requested = append(requested, k.key)
		}
	}
	found := 0
	err := c.heads(text, len(requested), func(i int, head protocol.Head) {
		if head.Code == protocol.MetaHit {
			found++
		}
		if head.Won {
			won = append(won, requested[i])
		}
	})
	if err != nil {
		return err
	}
	if found*2 < len(requested) {
		return fmt.Errorf("%w: it has %d of %d keys that it had before", errLost, found, len(requested))
	}
	if len(won) == 0 {
		return nil
	}
	return invalidate(won, c)
}
