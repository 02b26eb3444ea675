package pods

import (
	"context"
	"crypto/rand"
	"net/http"
	"path/filepath"
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
	agents    *service
	current   atomic.Pointer[string]
}

// newRouter routes between two pods, of which neither runs yet, until the test ends.
func newRouter(t *testing.T, old, next *Shard) *Router {
	t.Helper()
	r := &Router{old: old, next: next, agents: NewService(t, old.AgentAddress())}
	r.current.Store(Ref(""))
	old.Service, next.Service = r.agents.Address(), r.agents.Address()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	running.Go(func() {
		for ctx.Err() == nil {
			r.route(ctx)
			time.Sleep(5 * time.Millisecond)
		}
	})
	return r
}

func (r *Router) route(ctx context.Context) {
	switch {
	case IsReady(ctx, r.next):
		r.agents.Backend.Store(Ref(r.next.AgentAddress()))
		r.current.Store(Ref(r.next.Address()))
	case IsReady(ctx, r.old):
		r.agents.Backend.Store(Ref(r.old.AgentAddress()))
		r.current.Store(Ref(r.old.Address()))
	default:
		r.current.Store(Ref(""))
	}
}

// IsReady asks the probe that the kubelet asks.
func IsReady(ctx context.Context, s *Shard) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.AgentAddress()+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (r *Router) Address() string { return *r.current.Load() }

// NewPair returns two pods of a shard that share a key.
func NewPair(t *testing.T, args ...string) (old, next *Shard, r *Router) {
	t.Helper()
	old, next = NewShard(t), NewShard(t)
	old.PodUID, next.PodUID = "old", "next"
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
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
	for deadline := time.Now().Add(Patience); !IsReady(t.Context(), s); time.Sleep(2 * time.Millisecond) {
		if s.HasExited() || time.Now().After(deadline) {
			t.Fatalf("the pod %s is not ready", s.PodUID)
		}
	}
}
