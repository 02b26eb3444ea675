package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

// upgradeFrom are versions to upgrade from, the first one that is not the
// operator's default. Both are on docker.io.
var upgradeFrom = []string{"1.6.38", "1.6.18"}

// operandUpgrade tests that another spec.version reaches all shards one after the
// other, and that those that are not being replaced keep their items and serve.
//
// A release that leaves the replacement of pods to others says so: Progressing is
// False with reason ShardsOutdated. Then the test deletes the pod of an outdated
// shard. With one that goes on by itself it waits.
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
	if err := s.change(ctx, fmt.Sprintf(`{"version":%q}`, to)); err != nil {
		return err
	}
	for range shards + 1 {
		if err := s.goesOn(ctx, shards); err != nil {
			return err
		}
		i := slices.IndexFunc(s.last.Status.Shards, func(shard v1alpha1.ShardStatus) bool { return !shard.Current })
		if i < 0 {
			break
		}
		if c := meta.FindStatusCondition(s.last.Status.Conditions, v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonShardsOutdated {
			return fmt.Errorf("shard %s runs what was asked for before, and Progressing does not say %s but %s: %s", s.last.Status.Shards[i].Name, v1alpha1.ReasonShardsOutdated, c.Reason, c.Message)
		}
		if err := s.replace(ctx, i); err != nil {
			return err
		}
	}
	if err := s.runs(to); err != nil {
		return err
	}
	t.tell("all shards run memcached %s", to)
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
	err := s.await(ctx, patience, "all is current, or the operator leaves that to others", func(m *v1alpha1.Memcached) error {
		if m.Status.ReadySize < shards-1 {
			broken = fmt.Errorf("%d of %d shards serve while one at a time is replaced", m.Status.ReadySize, shards)
			return nil
		}
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProgressing)
		if c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Errorf("it is still at work: %+v", c)
		}
		return nil
	})
	if broken != nil {
		return broken
	}
	return err
}

// replace deletes the pod of an outdated shard. The others keep their items.
func (s *subject) replace(ctx context.Context, ordinal int) error {
	var kept []*items.Set
	for other := range s.last.Status.Servers {
		if other == ordinal {
			continue
		}
		set, err := s.written(ctx, other)
		if err != nil {
			return err
		}
		kept = append(kept, set)
	}
	if err := s.deletePod(ctx, ordinal); err != nil {
		return err
	}
	for _, set := range kept {
		if _, err := set.Keep(1); err != nil {
			return err
		}
	}
	s.tell("the other shards hold all of their items")
	return nil
}
