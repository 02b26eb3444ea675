package memcached

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/podhttp"
)

// silentAgents are the agents of a Memcached that accept connections and don't answer, as behind a network policy or in a
// tenant's own image, except for those of some shards.
type silentAgents struct {
	lock sync.Mutex
	// answers are those of the other agents by address.
	answers map[string]agentwire.Status
	// queries counts the queries by address, busy those in progress, and most is the highest busy.
	queries    map[string]int
	busy, most int
}

func (a *silentAgents) Status(ctx context.Context, podIP string) (agentwire.Status, error) {
	a.lock.Lock()
	a.queries[podIP]++
	a.busy++
	a.most = max(a.most, a.busy)
	answer, answers := a.answers[podIP]
	a.lock.Unlock()
	if !answers {
		<-ctx.Done()
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	a.busy--
	if !answers {
		return answer, ctx.Err()
	}
	return answer, nil
}

// silentMemcached returns the observation of a Memcached whose shards have not reported their start, its agents, and a
// function that queries them.
func silentMemcached(t *testing.T, size int32) (obs *observation.Observation, agents *silentAgents, query func()) {
	obs = plantest.Running(t, size)
	for ordinal, name := range obs.Names {
		plantest.ActivePod(obs, name).Status.PodIP = fmt.Sprintf("10.0.0.%d", ordinal)
	}
	obs.Memcached.Status.Shards = nil
	plantest.Read(obs)
	agents = &silentAgents{queries: map[string]int{}, answers: map[string]agentwire.Status{}}
	return obs, agents, func() {
		obs.Agents, obs.Unreachable = map[string]agentwire.Status{}, map[string]bool{}
		obs.Now = time.Now()
		queryAgents(t.Context(), agents, podhttp.ReconcileWait, obs)
	}
}

// answer lets the agent of a shard answer from now on.
func (a *silentAgents) answer(obs *observation.Observation, shard string) {
	pod := plantest.ActivePod(obs, shard)
	a.answers[pod.Status.PodIP] = agentwire.Status{Phase: agentwire.PhaseServing, PodUID: string(pod.UID), Start: agentwire.Start{Result: agentwire.StartCold, At: obs.Now}}
}

func TestReconcileWaitsOnceForManySilentAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obs, agents, query := silentMemcached(t, 128)
		agents.answer(obs, "cache-127")
		for i := range 5 {
			began := time.Now()
			query()
			if waited := time.Since(began); waited > podhttp.ReconcileWait { //nolint:forbidigo // the fake time of a bubble
				t.Errorf("reconcile %d waited for %s", i, waited)
			}
			if agents.busy != 0 || agents.most > parallelQueries {
				t.Errorf("reconcile %d made %d queries at a time, and %d continue after it", i, agents.most, agents.busy)
			}
		}
		if len(obs.Unreachable) != 127 || len(obs.Agents) != 1 {
			t.Errorf("%d agents are unreachable and %d answered; want each of the 128 to be queried", len(obs.Unreachable), len(obs.Agents))
		}
		for range 100 {
			time.Sleep(time.Second) //nolint:forbidigo // the fake time of a bubble
			if query(); len(obs.Unreachable) != 127 || len(obs.Agents) != 1 {
				t.Fatalf("%d agents are unreachable and %d answered", len(obs.Unreachable), len(obs.Agents))
			}
		}
	})
}

// A namespace with many of them must not occupy the workers.
func TestSilentAgentIsQueriedLessOftenTheLongerItIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obs, agents, query := silentMemcached(t, 1)
		waited := time.Duration(0)
		for range 3000 { // as events do
			began := time.Now()
			query()
			waited += time.Since(began)
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the fake time of a bubble
			if !obs.Unreachable["cache-0-x"] {
				t.Fatal("the agent is not unreachable")
			}
		}
		if n := agents.queries["10.0.0.0"]; n < 5 || n > 50 || waited != time.Duration(n)*podhttp.ReconcileWait {
			t.Errorf("in five minutes, reconciles waited %s for %d queries", waited, n)
		}
		agents.answer(obs, "cache-0")
		for range 31 {
			time.Sleep(time.Second) //nolint:forbidigo // the fake time of a bubble
			query()
		}
		if len(obs.Agents) != 1 || len(obs.Unreachable) != 0 || len(obs.Silences) != 0 {
			t.Errorf("an agent that answers again is %v, %v", obs.Unreachable, obs.Silences)
		}
	})
}

// The agent of a container that has just started may be ready a moment later, and its error costs no time.
func TestAgentThatRejectsConnectionsIsQueriedByEachReconcile(t *testing.T) {
	obs, _, _ := silentMemcached(t, 1)
	agents := rejectingAgents{}
	for i := range 3 {
		queryAgents(t.Context(), &agents, 0, obs)
		if agents.queries != i+1 || !obs.Unreachable["cache-0-x"] || len(obs.Silences) != 0 {
			t.Errorf("after %d reconciles: %d queries, unreachable %v", i+1, agents.queries, obs.Unreachable)
		}
	}
}

type rejectingAgents struct{ queries int }

func (a *rejectingAgents) Status(context.Context, string) (agentwire.Status, error) {
	a.queries++
	return agentwire.Status{}, errors.New("connection refused")
}
