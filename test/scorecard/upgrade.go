package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

// upgradeFrom are versions to upgrade from, the first one that is not the
// operator's default. Both are on docker.io.
var upgradeFrom = []string{"1.6.38", "1.6.18"}

// warm is the least share of its items that a shard keeps over an upgrade.
const warm = 0.99

// operandUpgrade tests that another spec.version reaches all shards one after the
// other, in their pods, and that each keeps its items.
func operandUpgrade(ctx context.Context, t *trial) error {
	const shards = 2
	s, err := t.create(ctx, "scorecard-upgrade", small(0))
	if err != nil {
		return err
	}
	to := s.last.Status.Version
	from := upgradeFrom[slices.IndexFunc(upgradeFrom, func(v string) bool { return v != to })]
	t.tell("the operator's default is memcached %s", to)
	if err := s.change(ctx, fmt.Sprintf(`{"size":%d,"version":%q}`, shards, from)); err != nil {
		return err
	}
	if err := s.available(ctx); err != nil {
		return err
	}
	if err := s.runs(from); err != nil {
		return err
	}
	before := s.last.Status.Nodes
	var sets []*items.Set
	for ordinal := range shards {
		set, err := s.written(ctx, ordinal)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	if err := s.change(ctx, fmt.Sprintf(`{"version":%q}`, to)); err != nil {
		return err
	}
	if err := s.goesOn(ctx, shards); err != nil {
		return err
	}
	if err := s.runs(to); err != nil {
		return err
	}
	if now := s.last.Status.Nodes; !slices.Equal(before, now) {
		return fmt.Errorf("the shards were in pods %v and are in %v: an upgrade is to be done in place", before, now)
	}
	for ordinal, set := range sets {
		kept, err := set.Keep(warm)
		if err != nil {
			return err
		}
		t.tell("shard %d runs memcached %s in the same pod with %d of its items", ordinal, to, kept)
	}
	return nil
}

// runs is an error unless every shard tells that it runs a version.
func (s *subject) runs(version string) error {
	for _, shard := range s.last.Status.Shards {
		if shard.Version != version || !shard.Current {
			return fmt.Errorf("shard %s runs memcached %s, current %t; %s was asked for", shard.Name, shard.Version, shard.Current, version)
		}
	}
	return nil
}

// goesOn waits while the operator brings about what was asked for, and is an error
// when more than one shard at a time does not serve.
func (s *subject) goesOn(ctx context.Context, shards int32) error {
	var broken error
	err := s.await(ctx, patience, "every shard is as asked", func(m *v1alpha1.Memcached) error {
		if m.Status.ReadySize < shards-1 {
			broken = fmt.Errorf("%d of %d shards serve while one at a time is changed", m.Status.ReadySize, shards)
			return nil
		}
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProgressing)
		if c == nil || c.Reason != v1alpha1.ReasonSettled {
			return fmt.Errorf("it is still at work: %+v", c)
		}
		return nil
	})
	if broken != nil {
		return broken
	}
	return err
}
