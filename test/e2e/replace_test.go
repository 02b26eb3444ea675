package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// With handover mode Disabled, a deleted pod and a change after which memcached can't reload its items cost the items and no connection.
// The change is announced first.
func TestShardsStartEmptyWithoutAHandoverAndFailNoConnection(t *testing.T) {
	const shards = 2
	s := newSpace(t)
	s.Serve("cache", suite.Small(shards, withoutHandover))
	s.Written("cache", 0, 1000)
	kept := s.Written("cache", 1, 1000)
	other := s.Lives("cache")
	delete(other, "cache-0")
	stop := s.Probes("cache", shards)
	empty := func(m *v1beta1.Memcached, ordinal int, before corev1.Pod) {
		t.Helper()
		shard := s.Shard(m, ordinal)
		if shard.StartResult != v1beta1.StartCold || shard.Items != 0 || shard.PodName == before.Name {
			t.Errorf("the status of the shard in its new pod is %+v", shard)
		}
		s.Event("cache", v1beta1.EventShardStartedEmpty, shard.Name)
		s.Holds(s.Written("cache", ordinal, 1000))
	}
	pod := s.Pods("cache")["cache-0"]
	s.Must(k.Delete(s.Ctx, &pod))
	m := s.Replaced("cache", 0, pod)
	s.Gone(&pod, pod.Name)
	empty(m, 0, pod)
	s.Untouched("cache", other)
	s.Holds(kept)

	before := s.Pods("cache")
	h := s.Follow("cache")
	s.Apply("cache", suite.Small(shards, withoutHandover, suite.Memory("80Mi")))
	m = s.Updated("cache")
	for _, pod := range before {
		s.Gone(&pod, pod.Name)
	}
	all := h.End()
	stop()
	h.InTurn(all) // which changes none in place
	for ordinal := range shards {
		name := cluster.ShardName("cache", ordinal)
		s.Event("cache", v1beta1.EventEmptyStartAnnounced, name, "memory 64Mi → 80Mi", "starts it empty")
		empty(m, ordinal, before[name])
		// 80Mi for items, and a page for each of 39 slab classes
		if words := strings.Join(s.agents("cache")[name].Arguments, " "); !strings.Contains(words, "-m 119 ") {
			t.Errorf("memcached of %s runs with %s", name, words)
		}
	}
	h.Says(all.Progress(), v1beta1.ReasonUpdatingShard+": shard 2 of 2: memory 64Mi → 80Mi, which starts it empty")
	s.Event("cache", v1beta1.EventUpdateFinished, "updated 2 shards")
}
