package scaling

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
)

// action is what the target does about a key.
type action int

const (
	// keep does nothing.
	keep action = iota
	// pull stores the source's item in the target, and push the target's in the source, if that has the item of the pair. What
	// the one doesn't have is deleted from the other.
	pull
	push
	// compare makes a pair of two equal items, and deletes others.
	compare
)

// rule returns what to do about a key that a scan has just shown on one side. What it knows may be old: the action decides again, by
// what both memcacheds answer.
func rule(step Step, paired bool, source, target state) action {
	switch {
	case source == same && target == same:
		return keep
	case step == Copy && source == same && target == gone: // evicted, or too large
		return keep
	case step == Copy:
		return pull
	case !paired && (source == gone || target == gone):
		return keep
	case !paired:
		return compare
	case source == same && step == Close: // the source's item is about to be deleted
		return keep
	case source == same:
		return push
	case target == same:
		return pull
	}
	return compare
}

// moves are the keys that one shard gets from another one.
type moves struct {
	from, to       ring.Ring
	source, target int
}

func newMoves(c Change, source, target int) (m moves, err error) {
	m = moves{source: source, target: target}
	if m.from, err = ring.New(c.Ring, c.From); err == nil {
		m.to, err = ring.New(c.Ring, c.To)
	}
	if err == nil && (source < 0 || source >= len(c.From) || target < 0 || target >= len(c.To)) {
		err = fmt.Errorf("no keys move from shard %d of %d to shard %d of %d", source, len(c.From), target, len(c.To))
	}
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	return m, nil
}

func (m moves) have(key []byte) bool {
	return m.to.Shard(key) == m.target && m.from.Shard(key) == m.source && isClients(key)
}

// isClients returns whether a key is no one of the operator, which has an item in each shard.
func isClients(key []byte) bool { return string(key) != wire.DiscoveryItem }

const (
	// fewNames bounds the servers in a message.
	fewNames = 4
	// leastPlaced is the share of the keys that must be where the ring puts them. Of fewer than fewKeys, all must be.
	leastPlaced, fewKeys = 0.99, 20
	// If as many keys as enoughRecent were used in the time recent, only they count: others may be from before an earlier change.
	enoughRecent, recent = 2000, 10 * time.Minute
)

// placed counts keys, and those that are where a ring puts them.
type placed struct{ keys, right int64 }

func (p placed) enough() bool {
	if p.keys < fewKeys {
		return p.keys == p.right
	}
	return float64(p.right) >= leastPlaced*float64(p.keys)
}

// verify returns ErrUnproven unless the keys of the own shard are where the ring over the servers of From puts them. Those that the change
// moves to it don't count: an earlier attempt may have copied them.
func verify(ctx context.Context, m Memcached, c Change, visit func(*memfile.Item)) error {
	from, err := ring.New(c.Ring, c.From)
	to := from
	if err == nil && len(c.To) > 0 {
		to, err = ring.New(c.Ring, c.To)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	var all, used placed
	since := time.Now().Add(-recent)
	_, err = m.Scan(ctx, handover.AnyOrder, isClients, func(item *memfile.Item) error {
		visit(item)
		var right int64
		if from.Shard(item.Key) == m.Ordinal {
			right = 1
		} else if to.Shard(item.Key) == m.Ordinal {
			return ctx.Err()
		}
		all.keys, all.right = all.keys+1, all.right+right
		if item.AccessedAt.After(since) {
			used.keys, used.right = used.keys+1, used.right+right
		}
		return ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("scanning the items: %w", err)
	}
	if used.keys >= enoughRecent {
		all = used
	}
	switch {
	case len(c.From) < 2:
		return fmt.Errorf("%w: the keys of a single shard don't show which ring the clients use", ErrUnproven)
	case all.enough():
		return nil
	}
	names := c.From
	if len(names) > fewNames {
		names = append(slices.Clip(names[:fewNames]), fmt.Sprintf("and %d more", len(c.From)-fewNames))
	}
	return fmt.Errorf("%w: %d of %d keys of shard %d are where %s over %s puts them (%.1f%%), at least %.0f%% are required; kubectl memcached ring shows what the clients use",
		ErrUnproven, all.right, all.keys, m.Ordinal, c.Ring, strings.Join(names, ", "), math.Floor(1000*float64(all.right)/float64(all.keys))/10, 100*leastPlaced)
}
