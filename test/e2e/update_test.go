package e2e

import (
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
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

// warm reports it unless every shard runs a version, and those that were restarted
// started with their items. Items of the clients beside the test may expire while a
// shard restarts; Holds compares those that no client touches.
func (s *space) warm(m *v1beta1.Memcached, version string, restarts map[string]int32) {
	s.Helper()
	for _, shard := range m.Status.Shards {
		isWarm := shard.StartResult == v1beta1.StartWarm && float64(shard.Items) >= share*float64(shard.ItemsBefore)
		if shard.Version != version || !isWarm && restarts[shard.Name] > 0 {
			s.Errorf("the shard's status is %+v", shard)
		}
	}
}
