package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

// itemsPerShard is how many items are written to a shard that has to keep them.
const itemsPerShard = 1000

// subject is a Memcached that a test made.
type subject struct {
	*trial
	key client.ObjectKey
	// last is how it was when it was last looked at.
	last *v1alpha1.Memcached
}

// small returns a spec whose shards ask for little of the CPU, so that all tests
// find room on a small cluster at once.
func small(size int32) v1alpha1.MemcachedSpec {
	return v1alpha1.MemcachedSpec{
		Size:      &size,
		Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
	}
}

// create makes a Memcached whose name begins with the given one, and waits until
// the operator has taken notice of it.
func (t *trial) create(ctx context.Context, name string, spec v1alpha1.MemcachedSpec) (*subject, error) {
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, GenerateName: name + "-"}, Spec: spec}
	if err := t.Create(ctx, m); err != nil {
		return nil, fmt.Errorf("creating a Memcached: %w", err)
	}
	s := &subject{trial: t, key: client.ObjectKeyFromObject(m), last: m}
	t.subjects = append(t.subjects, s)
	t.tell("Memcached %s is created, size %d", m.Name, *m.Spec.Size)
	return s, s.noticed(ctx)
}

// noticed waits until the status answers the spec.
func (s *subject) noticed(ctx context.Context) error {
	err := s.await(ctx, notice, "noticed", func(*v1alpha1.Memcached) error { return nil })
	if err != nil && ctx.Err() == nil && s.last.Status.ObservedGeneration < s.last.Generation {
		return fmt.Errorf("after %s the status of Memcached %s does not answer its spec: %w", notice, s.key.Name, errNoOperator)
	}
	return err
}

// change merges JSON into the spec.
func (s *subject) change(ctx context.Context, spec string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":%s}`, spec))
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	if err := s.Patch(ctx, m, patch); err != nil {
		return fmt.Errorf("changing the spec to %s: %w", spec, err)
	}
	s.tell("its spec is changed: %s", spec)
	return nil
}

// await waits until the status answers the spec and is as the check wants it.
func (s *subject) await(ctx context.Context, within time.Duration, what string, check func(*v1alpha1.Memcached) error) error {
	m, err := s.Await(ctx, s.key, within, what, check)
	if m != nil {
		s.last = m
	}
	return err
}

// available waits until all shards of the size asked for serve and nothing is left
// to do, and tells their state.
func (s *subject) available(ctx context.Context) error {
	err := s.await(ctx, patience, "available", func(m *v1alpha1.Memcached) error {
		if err := cluster.Available(m); err != nil {
			return err
		}
		if n := int(*m.Spec.Size); len(m.Status.Shards) != n || len(m.Status.Nodes) != n || len(m.Status.Servers) != n {
			return fmt.Errorf("%d shards were asked for; the status tells of %d, of pods %v and servers %v", n, len(m.Status.Shards), m.Status.Nodes, m.Status.Servers)
		}
		return nil
	})
	if err == nil {
		s.tell("it is available: memcached %s in %v", s.last.Status.Version, s.last.Status.Nodes)
	}
	return err
}

// written returns items that were written to one shard.
func (s *subject) written(ctx context.Context, ordinal int) (*items.Set, error) {
	server := s.last.Status.Servers[ordinal]
	return s.write(ctx, cluster.ShardName(s.key.Name, ordinal), server)
}

// write writes items through servers with an ordinary client and reads them back.
func (s *subject) write(ctx context.Context, name string, servers ...string) (*items.Set, error) {
	for _, server := range servers {
		if err := s.answers(ctx, server); err != nil {
			return nil, err
		}
	}
	set := items.New(name, itemsPerShard, servers...)
	if err := set.Write(); err != nil {
		return nil, err
	}
	if _, err := set.Keep(1); err != nil {
		return nil, err
	}
	s.tell("%d items are written and read through %v", itemsPerShard, servers)
	return set, nil
}

// answers waits until a server answers: a name or a node's proxy may learn of a
// pod a moment after it is ready.
func (s *subject) answers(ctx context.Context, server string) error {
	return cluster.Eventually(ctx, notice, "an answer of "+server, func(ctx context.Context) error { return probe.Ask(ctx, server) })
}

// life is what changes when a shard's pod or its container is another one.
type life struct {
	pod      types.UID
	restarts int32
}

// lives returns the lives of the shards, by name.
func (s *subject) lives(ctx context.Context) (map[string]life, error) {
	pods, err := s.Pods(ctx, s.key)
	if err != nil {
		return nil, err
	}
	lives := map[string]life{}
	for shard, pod := range pods {
		l := life{pod: pod.UID}
		for _, c := range pod.Status.ContainerStatuses {
			l.restarts += c.RestartCount
		}
		lives[shard] = l
	}
	return lives, nil
}

// untouched is an error unless the shards that are in before, but for one, are in
// the same containers still.
func (s *subject) untouched(ctx context.Context, before map[string]life, but string) error {
	now, err := s.lives(ctx)
	if err != nil {
		return err
	}
	was := maps.Clone(before)
	delete(was, but)
	for shard, life := range was {
		if now[shard] != life {
			return fmt.Errorf("shard %s was to be left alone, but its pod or container is another one: %+v before, %+v now", shard, life, now[shard])
		}
	}
	return nil
}

// deletePod deletes the pod of a shard and waits until the shard serves from
// another one, while a client connects to the other shards again and again.
func (s *subject) deletePod(ctx context.Context, ordinal int) error {
	before, err := s.lives(ctx)
	if err != nil {
		return err
	}
	shard, err := cluster.Shard(s.last, ordinal)
	if err != nil {
		return err
	}
	var probes []*probe.Probe
	for other, server := range s.last.Status.Servers {
		if other == ordinal {
			continue
		}
		if err := s.answers(ctx, server); err != nil {
			return err
		}
		address, err := resolved(ctx, server)
		if err != nil {
			return err
		}
		p := probe.Start(address)
		defer p.Stop()
		probes = append(probes, p)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: shard.Pod}}
	if err := s.Delete(ctx, pod); err != nil {
		return fmt.Errorf("deleting pod %s: %w", shard.Pod, err)
	}
	s.tell("pod %s of shard %s is deleted", shard.Pod, shard.Name)
	err = s.await(ctx, patience, "shard "+shard.Name+" serves from a new pod", func(m *v1alpha1.Memcached) error {
		now, err := cluster.Shard(m, ordinal)
		if err != nil {
			return err
		}
		if now.Pod == shard.Pod || now.ContainerID == shard.ContainerID || !now.Ready {
			return fmt.Errorf("its status tells of pod %q, ready %t: %s", now.Pod, now.Ready, now.Message)
		}
		return cluster.Available(m)
	})
	if err != nil {
		return err
	}
	now, err := cluster.Shard(s.last, ordinal)
	if err != nil {
		return err
	}
	s.tell("shard %s serves from pod %s, started %s", now.Name, now.Pod, now.Start)
	for _, p := range probes {
		report := p.Stop()
		if n := len(report.Failures); n > 0 {
			return fmt.Errorf("the pod of shard %s was deleted, and meanwhile %d of %d new connections to another shard, %s, failed, the first one so: %w",
				shard.Name, n, report.Connections, report.Address, report.Failures[0].Err)
		}
		s.tell("meanwhile %d of %d new connections to %s were answered", report.Connections, report.Connections, report.Address)
	}
	if err := s.gone(ctx, pod); err != nil {
		return err
	}
	return s.untouched(ctx, before, shard.Name)
}

// gone waits for the end of a pod. Until then it may be given items still, which
// end with it: a node's proxy learns of its replacement a moment late.
func (s *subject) gone(ctx context.Context, pod *corev1.Pod) error {
	return cluster.Eventually(ctx, patience, "the end of pod "+pod.Name, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := s.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelInstance: s.key.Name}); err != nil {
			return err
		}
		for _, p := range pods.Items {
			if p.Name == pod.Name {
				return fmt.Errorf("it is there, %s", p.Status.Phase)
			}
		}
		return nil
	})
}

// resolved returns the address of a server with its name looked up, so that the
// connections of a probe do not ask the name server 50 times a second.
func resolved(ctx context.Context, server string) (string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return "", fmt.Errorf("reading the server's address: %w", err)
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", fmt.Errorf("looking up the server's name: %w", err)
	}
	return net.JoinHostPort(addresses[0], port), nil
}

// delete deletes the Memcached; Kubernetes ends its shards after it.
func (s *subject) delete(ctx context.Context) error {
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	if err := client.IgnoreNotFound(s.Delete(ctx, m)); err != nil {
		return fmt.Errorf("cleaning up: Memcached %s stays, delete it by hand: %w", s.key, err)
	}
	s.tell("Memcached %s is deleted", s.key.Name)
	return nil
}

// trouble returns the reason for which a person has to look, empty when there is
// none.
func (s *subject) trouble() string {
	c := meta.FindStatusCondition(s.last.Status.Conditions, v1alpha1.ConditionDegraded)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Reason
}

// tellState adds to the log how the Memcached was when it was last looked at.
func (s *subject) tellState() {
	s.tell("Memcached %s when it was last looked at: generation %d, observed %d", s.key.Name, s.last.Generation, s.last.Status.ObservedGeneration)
	for _, c := range s.last.Status.Conditions {
		s.tell("  %s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, shard := range s.last.Status.Shards {
		s.tell("  shard %s in pod %q, ready %t, memcached %s %s", shard.Name, shard.Pod, shard.Ready, shard.Version, shard.Message)
	}
}
