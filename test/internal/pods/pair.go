package pods

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Router stands for the Service of a shard and its proxy: it leads to the new pod once that is ready, before that to the
// old one while it is, and to none otherwise.
type Router struct {
	old, next *Shard
	// failures counts the probes of a pod that failed since the last success.
	failures map[*Shard]int
	agents   *Service
	// Hold keeps the agents from the new pod while clients reach it: both pods serve until it is released.
	Hold    atomic.Bool
	current atomic.Pointer[string]
}

// newRouter routes between two pods, of which neither runs yet, until the test ends.
func newRouter(t *testing.T, old, next *Shard) *Router {
	t.Helper()
	r := &Router{old: old, next: next, failures: map[*Shard]int{}, agents: NewService(t, old.AgentAddress())}
	r.current.Store(new(""))
	old.Service, next.Service = r.agents.Address(), r.agents.Address()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	running.Go(func() {
		for looks := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-looks.C {
			r.route(ctx)
		}
	})
	return r
}

func (r *Router) route(ctx context.Context) {
	switch {
	case r.isReady(ctx, r.next):
		if !r.Hold.Load() {
			r.agents.Backend.Store(new(r.next.AgentAddress()))
		}
		r.current.Store(new(r.next.Address()))
	case r.isReady(ctx, r.old):
		r.agents.Backend.Store(new(r.old.AgentAddress()))
		r.current.Store(new(r.old.Address()))
	default:
		r.current.Store(new(""))
	}
}

// isReady is the kubelet's opinion: a pod whose probe succeeded is unready after two failures.
func (r *Router) isReady(ctx context.Context, s *Shard) bool {
	failures, known := r.failures[s]
	switch {
	case IsReady(ctx, s):
		r.failures[s] = 0
	case known && failures == 0:
		r.failures[s] = 1
	default:
		delete(r.failures, s)
		return false
	}
	return true
}

// IsReady requests the probe that the kubelet requests, and again while memcached is only late: that has no fault on a busy machine.
func IsReady(ctx context.Context, s *Shard) bool {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.AgentAddress()+"/readyz", nil)
		if err != nil {
			return false
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if !strings.Contains(string(text), "does not respond") {
			return response.StatusCode == http.StatusOK
		}
	}
}

// Address returns the pod to which the Service leads; empty if that is none.
func (r *Router) Address() string { return *r.current.Load() }

// WaitFor waits until the Service leads to a pod.
func (r *Router) WaitFor(pod *Shard) {
	pod.T.Helper()
	if !Eventually(func() bool { return r.Address() == pod.Address() }) {
		pod.T.Fatalf("the Service leads to %q, want %s", r.Address(), pod.Address())
	}
}

// NewPair returns two pods of a shard that share a key.
func NewPair(t *testing.T, args ...string) (old, next *Shard, r *Router) {
	t.Helper()
	old, next = NewShard(t), NewShard(t)
	old.PodUID, next.PodUID = "old", "next"
	key := make([]byte, 32)
	_, _ = rand.Read(key) // always full
	for _, s := range []*Shard{old, next} {
		s.HandoverKey = filepath.Join(s.Dir, "key")
		WriteFile(t, s.HandoverKey, string(key))
		s.Annotate(agentwire.ArgumentsFile, s.Arguments(args...))
	}
	return old, next, newRouter(t, old, next)
}

// WaitReady waits until a pod is ready.
func WaitReady(t *testing.T, s *Shard) {
	t.Helper()
	ready := false
	Eventually(func() bool {
		ready = IsReady(t.Context(), s)
		return ready || s.HasExited()
	})
	if !ready {
		t.Fatalf("the pod %s is not ready", s.PodUID)
	}
}
