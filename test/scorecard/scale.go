package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

// scale tests that shards come and go at the end, by the scale subresource, and
// that those that stay keep their pods and items.
func scale(ctx context.Context, t *trial) error {
	s, err := t.create(ctx, "scorecard-scale", small(1))
	if err != nil {
		return err
	}
	if err := s.available(ctx); err != nil {
		return err
	}
	var sets []*items.Set
	for _, size := range []int{3, 2} {
		for ordinal := len(sets); ordinal < len(s.last.Status.Servers); ordinal++ {
			set, err := s.written(ctx, ordinal)
			if err != nil {
				return err
			}
			sets = append(sets, set)
		}
		if sets, err = s.scaleTo(ctx, size, sets); err != nil {
			return err
		}
	}
	return nil
}

// scaleTo changes the number of shards and returns the sets of items of those that
// stayed.
func (s *subject) scaleTo(ctx context.Context, size int, sets []*items.Set) ([]*items.Set, error) {
	before, err := s.lives(ctx)
	if err != nil {
		return nil, err
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, size))
	if err := s.SubResource("scale").Patch(ctx, s.last.DeepCopy(), patch); err != nil {
		return nil, fmt.Errorf("scaling to %d by the scale subresource: %w", size, err)
	}
	s.tell("it is scaled to %d", size)
	if err := s.available(ctx); err != nil {
		return nil, err
	}
	if n := int(*s.last.Spec.Size); n != size {
		return nil, fmt.Errorf("it was scaled to %d, and its spec.size is %d", size, n)
	}
	stay := min(size, len(sets))
	for shard := range before {
		if !s.has(shard) {
			delete(before, shard)
		}
	}
	if len(before) != stay {
		return nil, fmt.Errorf("scaled to %d, %d shards stayed, want the first %d: %v", size, len(before), stay, before)
	}
	if err := s.untouched(ctx, before, ""); err != nil {
		return nil, err
	}
	for _, set := range sets[:stay] {
		if _, err := set.Keep(1); err != nil {
			return nil, err
		}
	}
	s.tell("shards 0 to %d are in the same pods, with all of their items", stay-1)
	return sets[:stay], nil
}

// has says whether the status tells of a shard.
func (s *subject) has(name string) bool {
	for _, shard := range s.last.Status.Shards {
		if shard.Name == name {
			return true
		}
	}
	return false
}
