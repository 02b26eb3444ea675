package copy

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// sampleSize is the number of keys that show whether a shard kept its items.
	sampleSize = 64
	// minTTL in seconds is how long a key of the sample lives at least; others may
	// expire while the shard restarts.
	minTTL = 5 * 60
	// hitsPerSample is how many hits replace one key of the sample.
	hitsPerSample = 16
)

// errLost is a shard that came back without its items.
var errLost = errors.New("it restarted without its items")

// lossDetector is a sample of the keys that a shard has.
type lossDetector struct {
	keys [sampleSize][]byte
	n    int
}

// addUniformly adds a key so that each key that was seen has the same chance to be in
// the sample.
func (d *lossDetector) addUniformly(key []byte) {
	at := d.n
	if at >= sampleSize {
		at = rand.IntN(d.n + 1)
	}
	d.n++
	if at < sampleSize {
		d.keys[at] = append(d.keys[at][:0], key...)
	}
}

// replaceOldest replaces the key that was added first.
func (d *lossDetector) replaceOldest(key []byte) {
	at := d.n % sampleSize
	d.n++
	d.keys[at] = append(d.keys[at][:0], key...)
}

// check returns errLost if a shard lacks more than half of the keys. Some are always
// missing, since memcached evicts and clients delete.
func (d *lossDetector) check(c *conn) error {
	var text []byte
	requested := 0
	for _, key := range d.keys {
		var ok bool
		if len(key) == 0 {
			continue
		}
		if text, ok = protocol.AppendMetaGet(text, key, " u"); ok {
			requested++
		}
	}
	if _, err := c.Write(text); err != nil {
		return err
	}
	found := 0
	for range requested {
		head, err := protocol.ReadHead(c.r)
		if err != nil {
			return err
		}
		if head.Code == protocol.MetaHit {
			found++
		}
	}
	if found*2 < requested {
		return fmt.Errorf("%w: it has %d of %d keys that it had before", errLost, found, requested)
	}
	return nil
}
