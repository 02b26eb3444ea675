package main

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

// itemsPerShard is how many items a test writes to a shard that has to keep them.
const itemsPerShard = 1000

// instance is a Memcached that a test created.
type instance struct {
	*environment
	key client.ObjectKey
	// last is the Memcached as it was last read.
	last *v1beta1.Memcached
}

// small returns a spec whose shards request so little CPU that the shards of all tests fit on a small cluster.
func small(size int32) v1beta1.MemcachedSpec {
	return v1beta1.MemcachedSpec{
		Size:      &size,
		Resources: &v1beta1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
	}
}

// create creates a Memcached and waits until the operator has observed it.
func (e *environment) create(ctx context.Context, name string, spec v1beta1.MemcachedSpec) (*instance, error) {
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, GenerateName: name + "-"}, Spec: spec}
	if err := e.createObject(ctx, m); err != nil {
		return nil, err
	}
	i := &instance{environment: e, key: client.ObjectKeyFromObject(m), last: m}
	e.instances = append(e.instances, i)
	e.logf("created Memcached %s, size %d", m.Name, *m.Spec.Size)
	observing, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	err := i.await(observing, "observed", func(*v1beta1.Memcached) error { return nil })
	if err != nil && ctx.Err() == nil && i.last.Status.ObservedGeneration < i.last.Generation {
		return i, fmt.Errorf("the status of Memcached %s is out of date after %s: %w", i.key.Name, observeTimeout, errNoOperator)
	}
	return i, err
}

// createAvailable creates a Memcached and waits until it is available.
func (e *environment) createAvailable(ctx context.Context, name string, spec v1beta1.MemcachedSpec) (*instance, error) {
	i, err := e.create(ctx, name, spec)
	if err != nil {
		return nil, err
	}
	return i, i.available(ctx)
}

// change merges JSON into the spec.
func (i *instance) change(ctx context.Context, spec string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":%s}`, spec))
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: i.key.Namespace, Name: i.key.Name}}
	if err := i.Patch(ctx, m, patch); err != nil {
		return fmt.Errorf("changing the spec to %s: %w", spec, err)
	}
	i.logf("changed its spec: %s", spec)
	return nil
}

// await waits until the status is up to date and check returns nil.
func (i *instance) await(ctx context.Context, what string, check func(*v1beta1.Memcached) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	m, err := i.Await(ctx, i.key, what, check)
	if m != nil {
		i.last = m
	}
	return err
}

// available waits until all desired shards serve and the operator has nothing left to do.
func (i *instance) available(ctx context.Context) error {
	err := i.await(ctx, "available", func(m *v1beta1.Memcached) error {
		if err := cluster.Available(m); err != nil {
			return err
		}
		if n := int(*m.Spec.Size); len(m.Status.Shards) != n || len(m.Status.Nodes) != n || len(m.Status.Servers) != n {
			return fmt.Errorf("size is %d; the status reports %d shards, pods %v and servers %v", n, len(m.Status.Shards), m.Status.Nodes, m.Status.Servers)
		}
		return nil
	})
	if err == nil {
		i.logf("available: memcached %s in %v", i.last.Status.Version, i.last.Status.Nodes)
	}
	return err
}

// fill writes items to one shard.
func (i *instance) fill(ctx context.Context, ordinal int) (*items.Set, error) {
	return i.write(ctx, cluster.ShardName(i.key.Name, ordinal), i.last.Status.Servers[ordinal])
}

// fillAll writes items to each of the first shards.
func (i *instance) fillAll(ctx context.Context, shards int) ([]*items.Set, error) {
	sets := make([]*items.Set, shards)
	for ordinal := range sets {
		var err error
		if sets[ordinal], err = i.fill(ctx, ordinal); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// keepAll returns an error unless all items of the sets are there.
func keepAll(sets []*items.Set) error {
	for _, set := range sets {
		if _, err := set.Keep(1); err != nil {
			return err
		}
	}
	return nil
}

// write writes items through servers with an ordinary client and reads them back.
func (i *instance) write(ctx context.Context, name string, servers ...string) (*items.Set, error) {
	for _, server := range servers {
		if err := i.answers(ctx, server); err != nil {
			return nil, err
		}
	}
	set := items.New(name, itemsPerShard, servers...)
	if err := set.Write(); err != nil {
		return nil, err
	}
	i.logf("wrote %d items through %v", itemsPerShard, servers)
	return set, keepAll([]*items.Set{set})
}

// answers waits until a server answers: DNS and the node's proxy learn of a pod a moment after it is ready.
func (i *instance) answers(ctx context.Context, server string) error {
	return cluster.Eventually(ctx, "an answer of "+server, func(ctx context.Context) error { return probe.Ask(ctx, server) })
}

// lives returns the lives of the shards by name.
func (i *instance) lives(ctx context.Context) (map[string]cluster.Life, error) {
	pods, err := i.Pods(ctx, i.key)
	return cluster.LivesOf(pods), err
}

// unchanged returns an error unless the shards of before, except for one, still run in the same containers.
func (i *instance) unchanged(ctx context.Context, before map[string]cluster.Life, except string) error {
	now, err := i.lives(ctx)
	if err != nil {
		return err
	}
	before = maps.Clone(before)
	delete(before, except)
	for shard, life := range before {
		if now[shard] != life {
			return fmt.Errorf("shard %s must not change, but its pod or container is another one: %+v before, %+v now", shard, life, now[shard])
		}
	}
	return nil
}

// deletePod deletes the pod of a shard and waits until the shard serves from a new one.
func (i *instance) deletePod(ctx context.Context, ordinal int) error {
	before, err := i.lives(ctx)
	if err != nil {
		return err
	}
	shard, err := cluster.Shard(i.last, ordinal)
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: shard.PodName}}
	if err := i.Delete(ctx, pod); err != nil {
		return fmt.Errorf("deleting pod %s: %w", shard.PodName, err)
	}
	i.logf("deleted pod %s of shard %s", shard.PodName, shard.Name)
	var now v1beta1.ShardStatus
	err = i.await(ctx, "shard "+shard.Name+" serves from a new pod", func(m *v1beta1.Memcached) error {
		var err error
		if now, err = cluster.Shard(m, ordinal); err != nil {
			return err
		}
		if now.PodName == shard.PodName || now.ContainerID == shard.ContainerID || !now.Ready {
			return fmt.Errorf("its status reports pod %q, ready %t: %s", now.PodName, now.Ready, now.Message)
		}
		return cluster.Available(m)
	})
	if err != nil {
		return err
	}
	i.logf("shard %s serves from pod %s, started %s", now.Name, now.PodName, now.StartResult)
	// Until then it may still receive items, as the node's proxy learns of the replacement a moment late.
	if err := i.Gone(ctx, pod); err != nil {
		return err
	}
	return i.unchanged(ctx, before, shard.Name)
}

// logState logs the status as it was last read.
func (i *instance) logState() {
	i.logf("last status of Memcached %s: generation %d, observed %d", i.key.Name, i.last.Generation, i.last.Status.ObservedGeneration)
	for _, c := range i.last.Status.Conditions {
		i.logf("  %s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, shard := range i.last.Status.Shards {
		i.logf("  shard %s in pod %q, ready %t, memcached %s %s", shard.Name, shard.PodName, shard.Ready, shard.Version, shard.Message)
	}
}
