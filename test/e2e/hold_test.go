package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestUpdateWaitsForHitRatio(t *testing.T) {
	const requests = 500
	s := newSpace(t)
	spec := suite.Small(2)
	gate := &spec.UpdateStrategy.HitRatioGate
	*gate = v1beta1.HitRatioGate{Mode: v1beta1.HitRatioGateStop, Percent: new(int32(90)), MinRequests: new(int32(requests)), TimeoutSeconds: new(int32(86400))}
	s.Serve("cache", spec)
	s.Written("cache", 0, 1)
	const there, nowhere = "cache-0-0", "never-written"
	s.reads("cache", 0, there, requests)

	agents := s.agents("cache")
	s.readsUntilRestart("cache", 0, there)
	spec.Config.Threads = new(int32(2))
	s.Apply("cache", spec)
	m := s.blocked("cache", v1beta1.GateHitRatioNotRecovered, "shard 2 of 2: config.threads 4 → 2; waiting for shard cache-0's hit ratio to recover to 90% of its previous value (100.0%)")
	if m.Status.UpdatedShards != 1 {
		t.Errorf("%d shards are updated", m.Status.UpdatedShards)
	}
	s.reads("cache", 0, nowhere, requests)
	gate.TimeoutSeconds = new(int32(1))
	s.Apply("cache", spec)
	s.Degraded("cache", v1beta1.ReasonHitRatioNotRecovered)
	gate.TimeoutSeconds = new(int32(86400))
	s.Apply("cache", spec) // the operator evaluates the gate again
	s.blocked("cache", v1beta1.GateHitRatioNotRecovered, "shard 2 of 2")
	if was, now := agents["cache-1"], s.agents("cache")["cache-1"]; now.PID != was.PID || now.PodUID != was.PodUID {
		t.Errorf("the second shard's memcached was process %d of pod %s and is %d of %s", was.PID, was.PodUID, now.PID, now.PodUID)
	}

	s.reads("cache", 0, there, 20*requests)
	s.Updated("cache")
}

// blocked waits until a gate holds an update back, and the status and Progressing say so in a sentence that begins like that.
func (s *space) blocked(name string, gate v1beta1.Gate, beginning string) *v1beta1.Memcached {
	s.Helper()
	return s.Await(name, "blocked by "+string(gate), func(m *v1beta1.Memcached) error {
		u, c := m.Status.Update, meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionProgressing)
		if u == nil || u.Gate != gate || !strings.HasPrefix(u.Message, beginning) {
			return fmt.Errorf("its update is %+v", u)
		}
		if c.Reason != string(gate) {
			return fmt.Errorf("Progressing is %+v", c)
		}
		return nil
	})
}

// reads requests a key of a shard repeatedly, over one connection.
func (s *space) reads(name string, ordinal int, key string, times int) {
	s.Helper()
	connection, err := protocol.At(s.Address(name, ordinal)).Dial(s.Ctx)
	s.Must(err)
	defer connection.Close()
	for range times {
		_, _, err := connection.Get(s.Ctx, key, " v")
		s.Must(err)
	}
}

// readsUntilRestart requests a key of a shard until memcached closes the connection: its hit ratio is that of the last
// minute before a restart, and the restart can begin later than that.
func (s *space) readsUntilRestart(name string, ordinal int, key string) {
	s.Helper()
	connection, err := protocol.At(s.Address(name, ordinal)).Dial(s.Ctx)
	s.Must(err)
	go func() {
		defer connection.Close()
		for pace := time.NewTicker(5 * time.Millisecond); err == nil; <-pace.C {
			_, _, err = connection.Get(s.Ctx, key, " v")
		}
	}()
}
