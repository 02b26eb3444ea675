package main

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const owner = client.FieldOwner("bench")

// applyMemcached creates a Memcached or changes its version. The other variants copy what the operator defaults here.
func applyMemcached(ctx context.Context, in space, version string) error {
	return applyWith(ctx, in, version, v1alpha1.HandoverStrict, v1alpha1.UpdateInPlace)
}

func applyAvailable(ctx context.Context, in space, version string) error {
	return applyWith(ctx, in, version, v1alpha1.HandoverAvailable, v1alpha1.UpdateHandover)
}

func applyWithoutHandover(ctx context.Context, in space, version string) error {
	return applyWith(ctx, in, version, v1alpha1.HandoverDisabled, v1alpha1.UpdateInPlace)
}

func applyWith(ctx context.Context, in space, version string, mode v1alpha1.HandoverMode, updates v1alpha1.UpdateType) error {
	m := memcachedac.Memcached(name, in.namespace).WithSpec(memcachedac.MemcachedSpec().
		WithSize(shards).
		WithVersion(version).
		WithMemory(in.memory()).
		WithHandover(memcachedac.Handover().WithMode(mode)).
		WithUpdateStrategy(memcachedac.UpdateStrategy().WithType(updates)))
	if err := in.Apply(ctx, m, owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("applying Memcached %s: %w", name, err)
	}
	return nil
}

func memcachedUpToDate(ctx context.Context, in space, version string) error {
	m, err := in.Memcached(ctx, client.ObjectKey{Namespace: in.namespace, Name: name})
	if err != nil {
		return err
	}
	return checkMemcached(m, version)
}

// checkMemcached returns an error unless a Memcached is available and all of its shards run the version.
func checkMemcached(m *v1alpha1.Memcached, version string) error {
	if m.Status.ObservedGeneration != m.Generation {
		return errors.New("the change is not observed yet")
	}
	if err := cluster.Available(m); err != nil {
		return err
	}
	for ordinal := range shards {
		s, err := cluster.Shard(m, ordinal)
		if err != nil {
			return err
		}
		if s.Version != version || !s.Current || !s.Ready {
			return fmt.Errorf("shard %s: version %s, current %t, ready %t", s.Name, s.Version, s.Current, s.Ready)
		}
	}
	return nil
}
