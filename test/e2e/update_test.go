package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

const (
	// share of its items that a shard is to keep over a change in place.
	share = 0.99
)

// updated waits until every shard of a Memcached matches its spec, and answers.
func (s *space) updated(name string) *v1alpha1.Memcached {
	s.Helper()
	m := s.await(name, "updated", func(m *v1alpha1.Memcached) error {
		if u := m.Status.Update; u != nil {
			return fmt.Errorf("%d shards are, %s", u.Updated, u.Message)
		}
		for _, shard := range m.Status.Shards {
			if !shard.Current {
				return fmt.Errorf("shard %s doesn't match the spec", shard.Name)
			}
		}
		return cluster.Available(m)
	})
	for ordinal := range m.Status.Shards {
		s.address(name, ordinal)
	}
	return m
}

// count returns how many items memcached says that a shard holds.
func (s *space) count(name string, ordinal int) int64 {
	s.Helper()
	connection, err := protocol.Dial(s.ctx, "tcp", s.address(name, ordinal))
	s.must(err)
	defer connection.Close()
	general, err := connection.General(s.ctx)
	s.must(err)
	return general.Items
}

// silences requests each shard of a Memcached until it is stopped; the returned
// function stops it and returns the longest time without an answer, by ordinal.
func (s *space) silences(name string, shards int) (stop func() []time.Duration) {
	s.Helper()
	var running []*probe.Probe
	for ordinal := range shards {
		p := probe.Start(s.address(name, ordinal))
		s.Cleanup(func() { p.Stop() })
		running = append(running, p)
	}
	return func() []time.Duration {
		var silent []time.Duration
		for _, p := range running {
			silent = append(silent, p.Stop().Silence)
		}
		return silent
	}
}

// restarted ends the test unless the pods of a Memcached are those of before, and
// their containers were restarted as often as expected, by shard.
func (s *space) restarted(name string, before map[string]cluster.Life, times map[string]int32) {
	s.Helper()
	want := map[string]cluster.Life{}
	for shard, l := range before {
		l.Restarts += times[shard]
		want[shard] = l
	}
	s.untouched(name, want)
}

// noPreflightPods fails the test while a preflight pod is left.
func (s *space) noPreflightPods() {
	s.Helper()
	s.eventually("no preflight pods", func(ctx context.Context) error {
		var pods corev1.PodList
		err := k.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelName: annotations.PreflightName})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%s is there", pods.Items[0].Name)
		}
		return err
	})
}

// While shard 1 of 3 restarts, the user sets another version: the one before, or a
// third one.
func TestVersionChangedDuringUpdateKeepsItems(t *testing.T) {
	t.Parallel()
	const shards, size = 3, 5000
	oldest, middle, newest := versions[0], versions[len(versions)/2], versions[len(versions)-1]
	for name, then := range map[string]string{"back": middle, "onto-a-third": oldest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.apply("cache", small(shards).WithVersion(middle))
			s.available("cache")
			var sets []*items.Set
			for ordinal := range shards {
				sets = append(sets, s.written("cache", ordinal, size))
			}
			before := s.lives("cache")
			check := s.checked("cache", shards)
			h := s.follow("cache")
			// The time between the shards keeps the middle open.
			s.apply("cache", small(shards).WithVersion(newest).WithUpdateStrategy(memcachedac.UpdateStrategy().WithMinIntervalSeconds(20)))
			s.eventually("shard 1 is changed", func(context.Context) error {
				if pod := s.pods("cache")["cache-1"]; !strings.HasSuffix(pod.Spec.Containers[0].Image, newest) {
					return fmt.Errorf("its image is %s", pod.Spec.Containers[0].Image)
				}
				return nil
			})
			s.apply("cache", small(shards).WithVersion(then))
			m := s.updated("cache")
			// Shard 1 arrives first, and then goes with shard 0 where all go. Shard 2 never
			// saw the version in between.
			times := map[string]int32{"cache-0": 2, "cache-1": 2, "cache-2": 1}
			if then == middle {
				times["cache-2"] = 0
			}
			s.restarted("cache", before, times)
			s.warm(m, then, times)

			all := h.end()
			h.neverTwo(all)
			for _, out := range all.outages() {
				t.Logf("%s was unavailable for %s", out.shard, out.took.Round(10*time.Millisecond))
			}
			check()
			for _, set := range sets {
				_, err := set.Keep(share)
				s.must(err)
			}
			s.noPreflightPods()
		})
	}
}

// The last time the kubelet makes the container wait, as one that crashed: the pod
// had its image a moment ago, and restarted on it.
func TestRevertToRecentVersionIsNotReportedAsCrash(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	one, other := versions[len(versions)-1], versions[len(versions)/2]
	s.apply("cache", small(1).WithVersion(one))
	s.available("cache")
	kept := s.written("cache", 0, 1000)
	before := s.lives("cache")
	h := s.follow("cache")
	for i, version := range []string{other, one, other, one} {
		s.apply("cache", small(1).WithVersion(version))
		m := s.updated("cache")
		restarts := map[string]int32{"cache-0": int32(i + 1)}
		s.restarted("cache", before, restarts)
		s.warm(m, version, restarts)
	}
	all := h.end()
	h.inTurn(all, "cache-0", "cache-0", "cache-0", "cache-0")
	for _, out := range all.outages() {
		t.Logf("out for %s", out.took.Round(10*time.Millisecond))
	}
	for _, status := range all.statuses() {
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDegraded); c.Status == metav1.ConditionTrue {
			t.Fatalf("it was Degraded: %s: %s", c.Reason, c.Message)
		}
	}
	_, err := kept.Keep(share)
	s.must(err)
}

// warm reports it unless every shard runs a version, and those that were restarted
// started with their items.
func (s *space) warm(m *v1alpha1.Memcached, version string, restarts map[string]int32) {
	s.Helper()
	for _, shard := range m.Status.Shards {
		isWarm := shard.Start == v1alpha1.StartWarm && float64(shard.Items) >= share*float64(shard.ItemsBefore)
		if shard.Version != version || !isWarm && restarts[shard.Name] > 0 {
			s.Errorf("the shard's status is %+v", shard)
		}
	}
}
