package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const owner = client.FieldOwner("bench-upgrade")

// createMemcached makes a Memcached. What it leaves to the operator's defaults is
// what the other variants copy.
func createMemcached(ctx context.Context, in space, version string) error {
	return applyMemcached(ctx, in, version)
}

// upgradeMemcached changes spec.version.
func upgradeMemcached(ctx context.Context, in space, version string) error {
	return applyMemcached(ctx, in, version)
}

func applyMemcached(ctx context.Context, in space, version string) error {
	m := memcachedac.Memcached(name, in.namespace).WithSpec(memcachedac.MemcachedSpec().
		WithSize(shards).
		WithVersion(version).
		WithMemory(resource.MustParse(memory)))
	if err := in.Apply(ctx, m, owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("applying Memcached %s: %w", name, err)
	}
	return nil
}

func memcachedSettled(ctx context.Context, in space, version string) error {
	m, err := in.Memcached(ctx, client.ObjectKey{Namespace: in.namespace, Name: name})
	if err != nil {
		return err
	}
	return settledMemcached(m, version)
}

// settledMemcached is memcachedSettled of a Memcached that was read.
func settledMemcached(m *v1alpha1.Memcached, version string) error {
	if m.Status.ObservedGeneration != m.Generation {
		return errUnseen
	}
	for _, condition := range []string{v1alpha1.ConditionDegraded, v1alpha1.ConditionProgressing} {
		if c := meta.FindStatusCondition(m.Status.Conditions, condition); c != nil && meta.IsStatusConditionTrue(m.Status.Conditions, condition) {
			return fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
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
	return cluster.Available(m)
}
