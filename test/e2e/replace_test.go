package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestPodDeletionFailsNoConnectionAndItsShardIsReportedEmpty(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", withoutHandover(suite.Small(2)))
	s.Available("cache")
	s.Written("cache", 0, 1000)
	kept := s.Written("cache", 1, 1000)
	other := s.Lives("cache")
	delete(other, "cache-0")

	stop := s.Probes("cache", 2)
	pod := s.Pods("cache")["cache-0"]
	s.Must(k.Delete(s.Ctx, &pod))
	m := s.replaced("cache", 0, pod)
	s.Gone(&pod, pod.Name)
	stop()

	shard := s.Shard(m, 0)
	if shard.Start != v1alpha1.StartCold || shard.Items != 0 || shard.PodName == pod.Name {
		t.Errorf("the status of the shard in its new pod is %+v", shard)
	}
	s.Event("cache", v1alpha1.EventShardStartedEmpty, "cache-0")
	s.Untouched("cache", other)
	s.Holds(kept)
	s.Holds(s.Written("cache", 0, 1000))
}

// Without a handover, a change after which memcached can't reload its items is announced first, and
// then costs the items and no connection.
func TestMemoryChangeReplacesShardsOneByOneAfterAnnouncingEmptyStarts(t *testing.T) {
	t.Parallel()
	const shards = 2
	s := newSpace(t)
	s.Apply("cache", withoutHandover(suite.Small(shards)))
	s.Available("cache")
	for ordinal := range shards {
		s.Written("cache", ordinal, 1000)
	}
	before := s.Pods("cache")
	h, stop := s.Follow("cache"), s.Probes("cache", shards)
	s.Apply("cache", withoutHandover(suite.Small(shards)).WithMemory(resource.MustParse("80Mi")))
	m := s.Updated("cache")
	for _, pod := range before {
		s.Gone(&pod, pod.Name)
	}
	all := h.End()
	stop()
	h.NeverOut(all)

	for ordinal := range shards {
		name := cluster.ShardName("cache", ordinal)
		s.Event("cache", v1alpha1.EventEmptyStartAnnounced, name, "memory 64Mi → 80Mi", "starts it empty")
		s.Event("cache", v1alpha1.EventShardStartedEmpty, name)
		announced, created := announcedReplacement(all, name), podAfter(all, name, before[name])
		if announced == nil || created == nil || announced.Version > created.Version {
			t.Errorf("the replacement of shard %s was announced at %+v, and its new pod created at %+v", name, announced, created)
			continue
		}
		if at := s.eventAt("cache", v1alpha1.EventEmptyStartAnnounced, name); at.After(created.At) {
			t.Errorf("the event of shard %s came %s after its new pod", name, at.Sub(created.At))
		}
		if ordinal > 0 {
			first := cluster.ShardName("cache", ordinal-1)
			if gone := goneAt(all, before[first]); gone == nil || gone.Version > created.Version {
				t.Errorf("shard %s got another pod before that of shard %s was deleted", name, first)
			}
		}
		shard := s.Shard(m, ordinal)
		if shard.Start != v1alpha1.StartCold || shard.Items != 0 || shard.PodName == before[name].Name {
			t.Errorf("the shard's status is %+v", shard)
		}
		// 80Mi for items, and a page for each of 39 slab classes
		if words := strings.Join(s.agents("cache")[name].Arguments, " "); !strings.Contains(words, "-m 119 ") {
			t.Errorf("memcached of %s runs with %s", name, words)
		}
		s.Holds(s.Written("cache", ordinal, 1000))
	}
	h.Says(all.Progress(), v1alpha1.ReasonUpdatingShard+": shard 2 of 2: memory 64Mi → 80Mi, which starts it empty")
	s.Event("cache", v1alpha1.EventUpdateFinished, "updated 2 shards")
}

// announcedReplacement returns when the status first said that the operator will replace a shard,
// or nil.
func announcedReplacement(all suite.Moments, shard string) *suite.Moment {
	for i, m := range all {
		if m.Memcached != nil && m.Memcached.Status.Update != nil && m.Memcached.Status.Update.Shard == shard && m.Memcached.Status.Update.Method == v1alpha1.UpdateReplace {
			return &all[i]
		}
	}
	return nil
}

// podAfter returns when the first other pod of a shard was there, or nil.
func podAfter(all suite.Moments, shard string, before corev1.Pod) *suite.Moment {
	for i, m := range all {
		if m.Pod != nil && suite.ShardOf(m.Pod) == shard && m.Pod.UID != before.UID {
			return &all[i]
		}
	}
	return nil
}

// goneAt returns when a pod was no more, or nil.
func goneAt(all suite.Moments, pod corev1.Pod) *suite.Moment {
	for i, m := range all {
		if m.Pod != nil && m.Pod.UID == pod.UID && m.Gone {
			return &all[i]
		}
	}
	return nil
}

// eventAt returns when an event about a Memcached that says all of the words was
// recorded first.
func (s *space) eventAt(name, reason string, words ...string) time.Time {
	s.Helper()
	events, err := k.Set.EventsV1().Events(s.Namespace).List(s.Ctx, metav1.ListOptions{})
	s.Must(err)
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
