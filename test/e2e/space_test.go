package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

// soon bounds what a cluster does within seconds, on a machine that is busy with
// other tests.
const soon = 2 * time.Minute

// owner of the fields that tests set.
const owner = client.FieldOwner("e2e")

// space is a test's own namespace and what it does there. Whatever goes wrong
// ends the test.
type space struct {
	*testing.T
	ctx       context.Context
	namespace string
}

// newSpace creates a namespace that is deleted with the test. When the test fails, it
// first logs the state there.
func newSpace(t *testing.T) *space {
	t.Helper()
	s := makeSpace(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("how things stand:\n" + k.Describe(context.Background(), s.namespace))
		}
		if err := deleteSpace(context.Background(), s.namespace); err != nil {
			t.Error(err)
		}
	})
	return s
}

// deleteSpace begins to delete a namespace. The Memcacheds go first and their
// Services with them: a namespace keeps Services until its pods are deleted, and a
// pod keeps serving while its Service exists and no other pod answers at it.
func deleteSpace(ctx context.Context, namespace string) error {
	if err := k.DeleteAllOf(ctx, &v1alpha1.Memcached{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("deleting the Memcacheds of %s: %w", namespace, err)
	}
	err := k.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting namespace %s: %w", namespace, err)
	}
	return nil
}

func makeSpace(t *testing.T) *space {
	t.Helper()
	s := &space{T: t, ctx: t.Context()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		Annotations:  map[string]string{"memcached-operator.io/test": t.Name()},
	}}
	s.must(k.Create(s.ctx, namespace))
	s.namespace = namespace.Name
	return s
}

// must ends the test unless there is no error.
func (s *space) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// small returns a spec whose shards ask for so little of the CPU that many fit a
// small node.
func small(size int32) *memcachedac.MemcachedSpecApplyConfiguration {
	return memcachedac.MemcachedSpec().
		WithSize(size).
		WithResources(memcachedac.ResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}))
}

// apply writes the desired state of a Memcached.
func (s *space) apply(name string, spec *memcachedac.MemcachedSpecApplyConfiguration) {
	s.Helper()
	s.must(k.Apply(s.ctx, memcachedac.Memcached(name, s.namespace).WithSpec(spec), owner, client.ForceOwnership))
}

// available waits until every shard of a Memcached serves and it is up to date.
func (s *space) available(name string) *v1alpha1.Memcached {
	s.Helper()
	return s.await(name, "available and up to date", cluster.Available)
}

func (s *space) await(name, what string, check func(*v1alpha1.Memcached) error) *v1alpha1.Memcached {
	s.Helper()
	m, err := k.Await(s.ctx, s.key(name), soon, what, check)
	s.must(err)
	return m
}

func (s *space) eventually(what string, check func(context.Context) error) {
	s.Helper()
	s.must(cluster.Eventually(s.ctx, soon, what, check))
}

// degraded waits until a Memcached is Degraded for that reason, and returns it
// with the sentence.
func (s *space) degraded(name, reason string) (*v1alpha1.Memcached, string) {
	s.Helper()
	var sentence string
	m := s.await(name, "Degraded: "+reason, func(m *v1alpha1.Memcached) error {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDegraded)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason {
			return fmt.Errorf("Degraded is %+v", c)
		}
		sentence = c.Message
		return nil
	})
	return m, sentence
}

// event waits for an event about a Memcached that says all of the words.
func (s *space) event(name, reason string, words ...string) {
	s.Helper()
	s.must(k.HasEvent(s.ctx, s.key(name), reason, words...))
}

// shard returns a shard of the status of a Memcached.
func (s *space) shard(m *v1alpha1.Memcached, ordinal int) v1alpha1.ShardStatus {
	s.Helper()
	shard, err := cluster.Shard(m, ordinal)
	s.must(err)
	return shard
}

// pods returns the pods of a Memcached by shard.
func (s *space) pods(name string) map[string]corev1.Pod {
	s.Helper()
	pods, err := k.Pods(s.ctx, s.key(name))
	s.must(err)
	return pods
}

// lives returns what changes when a pod or its container is another one, by
// shard.
func (s *space) lives(name string) map[string]cluster.Life {
	s.Helper()
	return cluster.LivesOf(s.pods(name))
}

// untouched ends the test unless the pods of a Memcached, or those of the shards
// that were there before, are the same as before.
func (s *space) untouched(name string, before map[string]cluster.Life) {
	s.Helper()
	now := s.lives(name)
	maps.DeleteFunc(now, func(shard string, _ cluster.Life) bool { _, was := before[shard]; return !was })
	if !maps.Equal(before, now) {
		s.Fatalf("pods of %s should be unchanged: they were %v and are %v", name, before, now)
	}
}

// address returns the address of a shard, once that answers: the node's proxy
// learns of a pod a moment after it is ready.
func (s *space) address(name string, ordinal int) string {
	s.Helper()
	address, err := k.Address(s.ctx, s.namespace, cluster.ShardName(name, ordinal))
	s.must(err)
	s.eventually("answers at "+address, func(ctx context.Context) error { return probe.Ask(ctx, address) })
	return address
}

// items returns a set of items behind the address of one shard.
func (s *space) items(name string, ordinal, size int) *items.Set {
	s.Helper()
	set := items.New(cluster.ShardName(name, ordinal), size, s.address(name, ordinal))
	s.Cleanup(func() { _ = set.Close() })
	return set
}

// written returns a set of items that were written to a shard.
func (s *space) written(name string, ordinal, size int) *items.Set {
	s.Helper()
	set := s.items(name, ordinal, size)
	s.must(set.Write())
	return set
}

// holds ends the test unless the whole set is there.
func (s *space) holds(set *items.Set) {
	s.Helper()
	_, err := set.Keep(1)
	s.must(err)
}

// probes opens connections to each shard of a Memcached until it is stopped; the
// returned function stops it and ends the test if one was not answered.
func (s *space) probes(name string, shards int) (stop func()) {
	s.Helper()
	var running []*probe.Probe
	for ordinal := range shards {
		p := probe.Start(s.address(name, ordinal))
		s.Cleanup(func() { p.Stop() })
		running = append(running, p)
	}
	return func() {
		s.Helper()
		for ordinal, p := range running {
			report := p.Stop()
			s.Logf("shard %d: %s", ordinal, report)
			if len(report.Failures) > 0 || report.Connections == 0 {
				s.Errorf("shard %d: connections failed", ordinal)
			}
		}
	}
}

// in returns the same space for a part of the test.
func (s *space) in(t *testing.T) *space {
	return &space{T: t, ctx: t.Context(), namespace: s.namespace}
}
