package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

// examplesAnnotation of a ClusterServiceVersion holds the examples that consoles show.
const examplesAnnotation = "alm-examples"

// crReady tests that the bundle's example becomes available and that clients can use the servers of its status.
func crReady(ctx context.Context, e *environment) error {
	example, err := exampleOf(e.bundle.CSV.Annotations[examplesAnnotation])
	if err != nil {
		return err
	}
	i, err := e.createAvailable(ctx, example.Name, example.Spec)
	if err != nil {
		return err
	}
	_, err = i.write(ctx, "cr-ready", i.last.Status.Servers...)
	return err
}

// exampleOf returns the first Memcached of the bundle's examples.
func exampleOf(annotation string) (*v1beta1.Memcached, error) {
	var examples []v1beta1.Memcached
	if err := json.Unmarshal([]byte(annotation), &examples); err != nil {
		return nil, fmt.Errorf("reading the bundle's %s: %w", examplesAnnotation, err)
	}
	i := slices.IndexFunc(examples, func(m v1beta1.Memcached) bool { return m.Kind == "Memcached" })
	if i < 0 {
		return nil, errors.New("the bundle has no example of a Memcached")
	}
	return &examples[i], nil
}

// podFailure tests that a shard whose pod is deleted comes back and that it does not affect the others: same pods, all items.
func podFailure(ctx context.Context, e *environment) error {
	const shards, deleted = 3, 1
	i, err := e.createAvailable(ctx, "scorecard-pod-failure", small(shards))
	if err != nil {
		return err
	}
	sets, err := i.fillAll(ctx, shards)
	if err != nil {
		return err
	}
	if err := i.deletePod(ctx, deleted); err != nil {
		return err
	}
	if err := keepAll(slices.Delete(sets, deleted, deleted+1)); err != nil {
		return err
	}
	e.logf("the other shards have all of their items")
	_, err = i.fill(ctx, deleted)
	return err
}

// scale tests that the scale subresource adds and removes shards at the end, and that the others keep pods and items.
func scale(ctx context.Context, e *environment) error {
	spec := small(1)
	spec.Scaling.ScaleSubresource.Directions = v1beta1.ScaleOutAndIn
	i, err := e.createAvailable(ctx, "scorecard-scale", spec)
	if err != nil {
		return err
	}
	var sets []*items.Set
	for _, size := range []int{3, 2} {
		for ordinal := len(sets); ordinal < len(i.last.Status.Servers); ordinal++ {
			set, err := i.fill(ctx, ordinal)
			if err != nil {
				return err
			}
			sets = append(sets, set)
		}
		if sets, err = i.scaleTo(ctx, size, sets); err != nil {
			return err
		}
	}
	return nil
}

// scaleTo changes the number of shards and returns the sets of the shards that remain.
func (i *instance) scaleTo(ctx context.Context, size int, sets []*items.Set) ([]*items.Set, error) {
	before, err := i.lives(ctx)
	if err != nil {
		return nil, err
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, size))
	if err := i.SubResource("scale").Patch(ctx, i.last.DeepCopy(), patch); err != nil {
		return nil, fmt.Errorf("scaling to %d by the scale subresource: %w", size, err)
	}
	i.logf("scaled to %d", size)
	if err := i.available(ctx); err != nil {
		return nil, err
	}
	if n := int(*i.last.Spec.Size); n != size {
		return nil, fmt.Errorf("spec.size is %d after scaling to %d", n, size)
	}
	for shard := range before {
		if !slices.ContainsFunc(i.last.Status.Shards, func(s v1beta1.ShardStatus) bool { return s.Name == shard }) {
			delete(before, shard)
		}
	}
	remain := min(size, len(sets))
	if len(before) != remain {
		return nil, fmt.Errorf("after scaling to %d, %d shards remain, want the first %d: %v", size, len(before), remain, before)
	}
	if err := i.unchanged(ctx, before, ""); err != nil {
		return nil, err
	}
	i.logf("shards 0 to %d are in the same pods", remain-1)
	return sets[:remain], keepAll(sets[:remain])
}

// upgradeFrom are versions to upgrade from, the first one that is not the operator's default. Both are on docker.io.
var upgradeFrom = []string{"1.6.38", "1.6.18"}

// minWarm is the share of its items that a shard has to keep during an upgrade.
const minWarm = 0.99

// operandUpgrade tests that a change of spec.version updates the shards one after the other, in their pods, and that each
// keeps its items.
func operandUpgrade(ctx context.Context, e *environment) error {
	const shards = 2
	i, err := e.create(ctx, "scorecard-upgrade", small(0))
	if err != nil {
		return err
	}
	to := i.last.Status.TargetVersion // of no shards
	from := upgradeFrom[slices.IndexFunc(upgradeFrom, func(v string) bool { return v != to })]
	e.logf("the operator's default is memcached %s", to)
	if err := i.change(ctx, fmt.Sprintf(`{"size":%d,"version":%q}`, shards, from)); err != nil {
		return err
	}
	if err := i.available(ctx); err != nil {
		return err
	}
	if err := i.runsVersion(from); err != nil {
		return err
	}
	before := i.last.Status.Nodes
	sets, err := i.fillAll(ctx, shards)
	if err != nil {
		return err
	}
	if err := i.change(ctx, fmt.Sprintf(`{"version":%q}`, to)); err != nil {
		return err
	}
	if err := i.awaitRollout(ctx, shards); err != nil {
		return err
	}
	if err := i.runsVersion(to); err != nil {
		return err
	}
	if now := i.last.Status.Nodes; !slices.Equal(before, now) {
		return fmt.Errorf("an upgrade must happen in place, but the shards were in pods %v and are in %v", before, now)
	}
	for ordinal, set := range sets {
		kept, err := set.Keep(minWarm)
		if err != nil {
			return err
		}
		e.logf("shard %d runs memcached %s in the same pod with %d of its items", ordinal, to, kept)
	}
	return nil
}

// runsVersion returns an error unless every shard reports that it runs a version.
func (i *instance) runsVersion(version string) error {
	for _, shard := range i.last.Status.Shards {
		if shard.Version != version || !shard.UpToDate {
			return fmt.Errorf("shard %s runs memcached %s, current %t; want %s", shard.Name, shard.Version, shard.UpToDate, version)
		}
	}
	return nil
}

// awaitRollout waits until the shards are up to date. It returns an error if more than one at a time does not serve.
func (i *instance) awaitRollout(ctx context.Context, shards int32) error {
	var unavailable error
	err := i.await(ctx, "up to date", func(m *v1beta1.Memcached) error {
		if m.Status.ReadyShards < shards-1 {
			unavailable = fmt.Errorf("only %d of %d shards serve during the rollout, which changes one at a time", m.Status.ReadyShards, shards)
			return nil
		}
		c := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionProgressing)
		if c == nil || c.Reason != v1beta1.ReasonUpToDate {
			return fmt.Errorf("it is progressing: %+v", c)
		}
		return nil
	})
	return errors.Join(unavailable, err)
}
