package e2e

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
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

// The last time the kubelet makes the container wait, as one that crashed: the pod
// had its image a moment ago, and restarted on it.
func TestRevertToRecentVersionIsNotReportedAsCrash(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	one, other := versions[len(versions)-1], versions[len(versions)/2]
	s.Apply("cache", suite.Small(1, suite.Version(one)))
	s.Available("cache")
	kept := s.Written("cache", 0, 1000)
	before := s.Lives("cache")
	h := s.Follow("cache")
	for i, version := range []string{other, one, other, one} {
		s.Apply("cache", suite.Small(1, suite.Version(version)))
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
