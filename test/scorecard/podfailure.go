package main

import (
	"context"

	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

// podFailure tests that a shard whose pod is deleted comes back and that the others
// do not notice: same pods, all items, no connection refused.
func podFailure(ctx context.Context, t *trial) error {
	const shards, deleted = 3, 1
	s, err := t.create(ctx, "scorecard-pod-failure", small(shards))
	if err != nil {
		return err
	}
	if err := s.available(ctx); err != nil {
		return err
	}
	var kept []*items.Set
	for ordinal := range shards {
		set, err := s.written(ctx, ordinal)
		if err != nil {
			return err
		}
		if ordinal != deleted {
			kept = append(kept, set)
		}
	}
	if err := s.deletePod(ctx, deleted); err != nil {
		return err
	}
	for _, set := range kept {
		if _, err := set.Keep(1); err != nil {
			return err
		}
	}
	t.tell("the other shards hold all of their items")
	_, err = s.written(ctx, deleted)
	return err
}
