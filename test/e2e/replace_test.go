package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

func TestPodDeletionFailsNoConnectionAndItsShardIsReportedEmpty(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")
	s.written("cache", 0, 1000)
	kept := s.written("cache", 1, 1000)
	other := s.lives("cache")
	delete(other, "cache-0")

	stop := s.probes("cache", 2)
	pod := s.pods("cache")["cache-0"]
	s.must(k.Delete(s.ctx, &pod))
	m := s.replaced("cache", 0, pod)
	s.gone(&pod, pod.Name)
	stop()

	shard := s.shard(m, 0)
	if shard.Start != v1alpha1.StartCold || shard.Items != 0 || shard.PodName == pod.Name {
		t.Errorf("the status of the shard in its new pod is %+v", shard)
	}
	s.event("cache", v1alpha1.EventShardStartedEmpty, "cache-0")
	s.untouched("cache", other)
	s.holds(kept)
	s.holds(s.written("cache", 0, 1000))
}

// A change after which memcached can't reload its items is announced first, and
// then costs the items and no connection.
func TestMemoryChangeReplacesShardsOneByOneAfterAnnouncingEmptyStarts(t *testing.T) {
	t.Parallel()
	const shards = 2
	s := newSpace(t)
	s.apply("cache", small(shards))
	s.available("cache")
	for ordinal := range shards {
		s.written("cache", ordinal, 1000)
	}
	before := s.pods("cache")
	h, stop := s.follow("cache"), s.probes("cache", shards)
	s.apply("cache", small(shards).WithMemory(resource.MustParse("80Mi")))
	m := s.updated("cache")
	for _, pod := range before {
		s.gone(&pod, pod.Name)
	}
	all := h.end()
	stop()
	h.neverOut(all)

	for ordinal := range shards {
		name := cluster.ShardName("cache", ordinal)
		s.event("cache", v1alpha1.EventEmptyStartAnnounced, name, "memory 64Mi → 80Mi", "starts it empty")
		s.event("cache", v1alpha1.EventShardStartedEmpty, name)
		announced, created := all.announcedReplacement(name), all.podAfter(name, before[name])
		if announced == nil || created == nil || announced.version > created.version {
			t.Errorf("the replacement of shard %s was announced at %+v, and its new pod created at %+v", name, announced, created)
			continue
		}
		if at := s.eventAt("cache", v1alpha1.EventEmptyStartAnnounced, name); at.After(created.at) {
			t.Errorf("the event of shard %s came %s after its new pod", name, at.Sub(created.at))
		}
		if ordinal > 0 {
			first := cluster.ShardName("cache", ordinal-1)
			if gone := all.goneAt(before[first]); gone == nil || gone.version > created.version {
				t.Errorf("shard %s got another pod before that of shard %s was deleted", name, first)
			}
		}
		shard := s.shard(m, ordinal)
		if shard.Start != v1alpha1.StartCold || shard.Items != 0 || shard.PodName == before[name].Name {
			t.Errorf("the shard's status is %+v", shard)
		}
		if words := strings.Join(s.agents("cache")[name].Arguments, " "); !strings.Contains(words, "-m 80 ") {
			t.Errorf("memcached of %s runs with %s", name, words)
		}
		s.holds(s.written("cache", ordinal, 1000))
	}
	h.says(all.progress(), v1alpha1.ReasonUpdatingShard+": shard 2 of 2: memory 64Mi → 80Mi, which starts it empty")
	s.event("cache", v1alpha1.EventUpdateFinished, "updated 2 shards")
}

func TestUnschedulableReplacementKeepsTheOldPod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")
	kept := []*items.Set{s.written("cache", 0, 1000), s.written("cache", 1, 1000)}
	before := s.pods("cache")
	h, stop := s.follow("cache"), s.probes("cache", 2)

	s.apply("cache", small(2).WithScheduling(memcachedac.Scheduling().WithNodeSelector(map[string]string{"disk": "none"})))
	m, sentence := s.degraded("cache", v1alpha1.ReasonUnschedulable)
	t.Log(sentence)
	for _, word := range []string{"cache-0", "node affinity/selector", "the old pod keeps serving", "revert the spec"} {
		if !strings.Contains(sentence, word) {
			t.Errorf("the message does not contain %q", word)
		}
	}
	if m.Status.Ready != "2/2" || m.Status.Nodes[0] != before["cache-0"].Name {
		t.Errorf("the status has %s shards, pods %v", m.Status.Ready, m.Status.Nodes)
	}

	s.apply("cache", small(2))
	s.updated("cache")
	s.eventually("one pod a shard", func(ctx context.Context) error {
		var pods corev1.PodList
		err := k.List(ctx, &pods, client.InNamespace(s.namespace))
		if err == nil && len(pods.Items) != 2 {
			err = fmt.Errorf("%d pods are there", len(pods.Items))
		}
		return err
	})
	all := h.end()
	stop()
	h.neverOut(all)
	s.untouched("cache", cluster.LivesOf(before))
	for _, set := range kept {
		s.holds(set)
	}
}

// announcedReplacement returns when the status first said that the operator will replace a shard,
// or nil.
func (all moments) announcedReplacement(shard string) *moment {
	for i, m := range all {
		if m.memcached != nil && m.memcached.Status.Update != nil && m.memcached.Status.Update.Shard == shard && m.memcached.Status.Update.Method == v1alpha1.UpdateReplace {
			return &all[i]
		}
	}
	return nil
}

// podAfter returns when the first other pod of a shard was there, or nil.
func (all moments) podAfter(shard string, before corev1.Pod) *moment {
	for i, m := range all {
		if m.pod != nil && shardOf(m.pod) == shard && m.pod.UID != before.UID {
			return &all[i]
		}
	}
	return nil
}

// goneAt returns when a pod was no more, or nil.
func (all moments) goneAt(pod corev1.Pod) *moment {
	for i, m := range all {
		if m.pod != nil && m.pod.UID == pod.UID && m.gone {
			return &all[i]
		}
	}
	return nil
}

// eventAt returns when an event about a Memcached that says all of the words was
// recorded first.
func (s *space) eventAt(name, reason string, words ...string) time.Time {
	s.Helper()
	events, err := k.Set.EventsV1().Events(s.namespace).List(s.ctx, metav1.ListOptions{})
	s.must(err)
	var first time.Time
	for _, e := range events.Items {
		says := !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.Note, w) })
		if e.Regarding.Name == name && e.Reason == reason && says && (first.IsZero() || e.EventTime.Time.Before(first)) {
			first = e.EventTime.Time
		}
	}
	if first.IsZero() {
		s.Fatalf("there is no event %s of %s", reason, name)
	}
	return first
}
