package scaling

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// Orphans are items of keys that clients look for on another shard, such as those that a change of the number of shards leaves
// if no items move. Bytes are those of their keys and values.
type Orphans struct{ Items, Bytes int64 }

func (o *Orphans) add(bytes int) { o.Items, o.Bytes = o.Items+1, o.Bytes+int64(bytes) }

// Purge deletes the orphans of a shard, at a limited rate, and returns how many it has deleted, also with an error. A dry run
// returns how many there are. If the keys that clients use aren't where the ring over the servers puts them, the error is ErrUnproven, and nothing is
// deleted. An orphan that a client changes in the meantime stays.
func Purge(ctx context.Context, m Memcached, name string, servers []string, dryRun bool) (orphans Orphans, err error) {
	of, err := ring.New(name, servers)
	if err != nil {
		return orphans, fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	isOrphan := func(item *memfile.Item) bool {
		return of.Shard(item.Key) != m.Ordinal && string(item.Key) != wire.DiscoveryItem
	}
	own, err := openPipe(ctx, m)
	if err != nil {
		return orphans, err
	}
	defer own.close()
	err = verify(ctx, m, Change{Ring: name, From: servers}, func(item *memfile.Item) {
		if dryRun && isOrphan(item) {
			orphans.add(len(item.Key) + len(item.Value))
		}
	})
	if isUnproven(err) {
		err = fmt.Errorf("%w; if %d keys or more were used in the last %.0f minutes, only these count", err, enoughRecent, recent.Minutes())
	}
	if err != nil {
		return Orphans{}, err
	}
	if !dryRun {
		pace := peerlink.Pace{Deadline: time.Now().AddDate(1, 0, 0)}
		_, err = m.Scan(ctx, handover.AnyOrder, func(item *memfile.Item) error {
			if !isOrphan(item) {
				return ctx.Err()
			}
			size := len(item.Key) + len(item.Value)
			if err := own.deleteUnchanged(item.Key, item.CAS, func() { orphans.add(size) }); err != nil {
				return err
			}
			return peerlink.Sleep(ctx, pace.Add(0, time.Now()))
		})
	}
	if err == nil {
		err = own.check()
	}
	if err != nil {
		return orphans, fmt.Errorf("purging the items: %w", err)
	}
	return orphans, nil
}

// deleteUnchanged deletes an item that still has a CAS, and calls then if it did.
func (p *pipe) deleteUnchanged(key []byte, cas uint64, then func()) error {
	request, ok := protocol.AppendDelete(p.batch, key)
	if !ok {
		return nil
	}
	p.batch = append(strconv.AppendUint(append(request[:len(request)-2], " C"...), cas, 10), "\r\n"...)
	return p.add(func(head protocol.Head, _ []byte) error {
		if head.Code == protocol.MetaHit {
			then()
		}
		return nil
	})
}
