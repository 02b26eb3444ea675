package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// The kubelet would kill the container while memcached loads or saves its items.
func TestHealthIgnoresAMemcachedThatStartsOrStops(t *testing.T) {
	for _, phase := range []wire.Phase{wire.PhaseStarting, wire.PhaseRestarting, wire.PhaseStopping} {
		if err := checkHealth(t.Context(), &state{status: wire.Status{Phase: phase}, superseded: make(chan struct{})}); err != nil {
			t.Errorf("%s: %v", phase, err)
		}
	}
}

// waiting calls began when someone waits for the end of the context.
type waiting struct {
	context.Context
	began func()
}

func (w waiting) Done() <-chan struct{} {
	w.began()
	return w.Context.Done()
}

// Otherwise the kubelet's probes wait behind all of them.
func TestFewRequestsForTheStatusWaitForStatistics(t *testing.T) {
	c := newClient(protocol.At("127.0.0.1:1"))
	<-c.lock // a query that takes forever
	var states atomic.Pointer[state]
	states.Store(&state{status: wire.Status{Phase: wire.PhaseServing, PodUID: "pod"}, client: c})
	h := handler(&states)
	finished := make(chan int, maxStatsWaiters+1)
	get := func(i int, ctx context.Context) {
		response := httptest.NewRecorder()
		h.ServeHTTP(response, httptest.NewRequestWithContext(ctx, http.MethodGet, wire.StatusPath, http.NoBody))
		finished <- i
	}
	var entered, requests sync.WaitGroup
	entered.Add(maxStatsWaiters)
	for i := range maxStatsWaiters {
		requests.Go(func() { get(i, waiting{t.Context(), sync.OnceFunc(entered.Done)}) })
	}
	entered.Wait()
	time.Sleep(statsTimeout / 3) // if it waited, it would finish that much later than the others
	get(maxStatsWaiters, t.Context())
	if first := <-finished; first != maxStatsWaiters {
		t.Error("one request more waited, too")
	}
	requests.Wait()
}
