package process

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

// router stands for the Service of a shard and its proxy: it leads to the new pod once that is ready, before that to the
// old one while it is, and to none otherwise.
type router struct {
	old, next *shard
	agents    *service
	current   atomic.Pointer[string]
}

// newRouter routes between two pods, of which neither runs yet, until the test ends.
func newRouter(t *testing.T, old, next *shard) *router {
	t.Helper()
	r := &router{old: old, next: next, agents: newService(t, old.agentAddress())}
	r.current.Store(ref(""))
	old.service, next.service = r.agents.address(), r.agents.address()
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

func (r *router) route(ctx context.Context) {
	switch {
	case isReady(ctx, r.next):
		r.agents.backend.Store(ref(r.next.agentAddress()))
		r.current.Store(ref(r.next.address()))
	case isReady(ctx, r.old):
		r.agents.backend.Store(ref(r.old.agentAddress()))
		r.current.Store(ref(r.old.address()))
	default:
		r.current.Store(ref(""))
	}
}

// isReady asks the probe that the kubelet asks.
func isReady(ctx context.Context, s *shard) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.agentAddress()+"/readyz", nil)
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

func (r *router) address() string { return *r.current.Load() }

// newPair returns two pods of a shard that share a key.
func newPair(t *testing.T, args ...string) (old, next *shard, r *router) {
	t.Helper()
	old, next = newShard(t), newShard(t)
	old.podUID, next.podUID = "old", "next"
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*shard{old, next} {
		s.handoverKey = filepath.Join(s.dir, "key")
		writeFile(t, s.handoverKey, string(key))

		s.annotate(agentwire.ArgumentsFile, s.arguments(args...))
	}
	return old, next, newRouter(t, old, next)
}

// waitReady waits until a pod is ready.
func waitReady(t *testing.T, s *shard) {
	t.Helper()
	for deadline := time.Now().Add(patience); !isReady(t.Context(), s); time.Sleep(2 * time.Millisecond) {
		if s.hasExited() || time.Now().After(deadline) {
			t.Fatalf("the pod %s is not ready", s.podUID)
		}
	}
}
