package scaling

import (
	"context"
	"errors"
	"fmt"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
)

// Orphans are items of keys that clients look for on another shard, such as those that a change of the number of shards leaves
// if no items move. Bytes are those of their keys and values.
type Orphans struct{ Items, Bytes int64 }

func (o *Orphans) add(bytes int) { o.Items, o.Bytes = o.Items+1, o.Bytes+int64(bytes) }

// Purge deletes the orphans of a shard, and returns how many it has deleted, also with an error. A dry run
// returns how many there are. If the keys that clients use aren't where the ring over the servers puts them, the error is ErrUnproven, and nothing is
// deleted. An orphan that a client changes in the meantime stays.
func Purge(ctx context.Context, m Memcached, name string, servers []string, dryRun bool) (orphans Orphans, err error) {
	of, err := ring.New(name, servers)
	if err != nil {
		return orphans, fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	isOrphan := func(key []byte) bool { return of.Shard(key) != m.Ordinal && isClients(key) }
	own, err := openPipe(ctx, m)
	if err != nil {
		return orphans, err
	}
	defer own.close()
	err = verify(ctx, m, Change{Ring: name, From: servers}, func(item *memfile.Item) {
		if dryRun && isOrphan(item.Key) {
			orphans.add(item.Size)
		}
	})
	if errors.Is(err, ErrUnproven) {
		err = fmt.Errorf("%w; if %d keys or more were used in the last %.0f minutes, only these count", err, enoughRecent, recent.Minutes())
	}
	if err != nil {
		return Orphans{}, err
	}
	if dryRun {
		err = own.check()
	} else {
		_, err = own.purge(ctx, isOrphan, false, orphans.add)
	}
	if err != nil {
		return orphans, fmt.Errorf("purging the items: %w", err)
	}
	return orphans, nil
}

// Forget deletes from a target, when clients use the new owners only, the items of all keys that the change moves to it, whatever they
// contain by then. So a target that can't compare them with those of the sources has no old value. It requires neither a CAS nor a dump.
func Forget(ctx context.Context, m Memcached, c Change) error {
	moves, err := newMoves(c, 0, m.Ordinal)
	if err != nil {
		return err
	}
	moved := func(key []byte) bool {
		return moves.to.Shard(key) == m.Ordinal && moves.from.Shard(key) != m.Ordinal && isClients(key)
	}
	own, err := connect(ctx, m)
	if err != nil {
		return err
	}
	defer own.close()
	if err := own.purgeAll(ctx, moved, true, func(int) {}); err != nil {
		return fmt.Errorf("deleting the items of the keys that move: %w", err)
	}
	return nil
}
