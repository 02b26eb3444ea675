package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// count returns how many items memcached says that a shard holds.
func (s *space) count(name string, ordinal int) int64 {
	s.Helper()
	connection, err := protocol.At(s.Address(name, ordinal)).Dial(s.Ctx)
	s.Must(err)
	defer connection.Close()
	general, err := connection.General(s.Ctx)
	s.Must(err)
	return general.Items
}

// silences requests each shard of a Memcached until it is stopped; the returned
// function stops it and returns the longest time without an answer, by ordinal.
func (s *space) silences(name string, shards int) (stop func() []time.Duration) {
	s.Helper()
	var running []*probe.Probe
	for ordinal := range shards {
		p := probe.Start(s.Address(name, ordinal))
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
			s.Apply("cache", suite.Small(shards).WithVersion(middle))
			s.Available("cache")
			var sets []*items.Set
			for ordinal := range shards {
				sets = append(sets, s.Written("cache", ordinal, size))
			}
			before := s.Lives("cache")
			check := s.checked("cache", shards)
			h := s.Follow("cache")
			// The time between the shards keeps the middle open.
			s.Apply("cache", suite.Small(shards).WithVersion(newest).WithUpdateStrategy(memcachedac.UpdateStrategy().WithMinIntervalSeconds(20)))
			s.Eventually("shard 1 is changed", func(context.Context) error {
				if pod := s.Pods("cache")["cache-1"]; !strings.HasSuffix(pod.Spec.Containers[0].Image, newest) {
					return fmt.Errorf("its image is %s", pod.Spec.Containers[0].Image)
				}
				return nil
			})
			s.Apply("cache", suite.Small(shards).WithVersion(then))
			m := s.Updated("cache")
			// Shard 1 arrives first, and then goes with shard 0 where all go. Shard 2 never
			// saw the version in between.
			times := map[string]int32{"cache-0": 2, "cache-1": 2, "cache-2": 1}
			if then == middle {
				times["cache-2"] = 0
			}
			s.Restarted("cache", before, times)
			s.warm(m, then, times)

			all := h.End()
			h.NeverTwo(all)
			for _, out := range all.Outages() {
				t.Logf("%s was unavailable for %s", out.Shard, out.Took.Round(10*time.Millisecond))
			}
			check()
			for _, set := range sets {
				s.Holds(set)
			}
			s.NoPreflightPods()
		})
	}
}

// The last time the kubelet makes the container wait, as one that crashed: the pod
// had its image a moment ago, and restarted on it.
func TestRevertToRecentVersionIsNotReportedAsCrash(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	one, other := versions[len(versions)-1], versions[len(versions)/2]
	s.Apply("cache", suite.Small(1).WithVersion(one))
	s.Available("cache")
	kept := s.Written("cache", 0, 1000)
	before := s.Lives("cache")
	h := s.Follow("cache")
	for i, version := range []string{other, one, other, one} {
		s.Apply("cache", suite.Small(1).WithVersion(version))
		m := s.Updated("cache")
		restarts := map[string]int32{"cache-0": int32(i + 1)}
		s.Restarted("cache", before, restarts)
		s.warm(m, version, restarts)
	}
	all := h.End()
	h.InTurn(all, "cache-0", "cache-0", "cache-0", "cache-0")
	for _, out := range all.Outages() {
		t.Logf("out for %s", out.Took.Round(10*time.Millisecond))
	}
	for _, status := range all.Statuses() {
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDegraded); c.Status == metav1.ConditionTrue {
			t.Fatalf("it was Degraded: %s: %s", c.Reason, c.Message)
		}
	}
	s.Holds(kept)
}

// warm reports it unless every shard runs a version, and those that were restarted
// started with their items. Items of the clients beside the test may expire while a
// shard restarts; Holds compares those that no client touches.
func (s *space) warm(m *v1alpha1.Memcached, version string, restarts map[string]int32) {
	s.Helper()
	for _, shard := range m.Status.Shards {
		isWarm := shard.Start == v1alpha1.StartWarm && float64(shard.Items) >= share*float64(shard.ItemsBefore)
		if shard.Version != version || !isWarm && restarts[shard.Name] > 0 {
			s.Errorf("the shard's status is %+v", shard)
		}
	}
}
