package agent

import (
	"sync/atomic"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// state is what the supervisor publishes. It is immutable.
type state struct {
	status wire.Status
	// client is nil while memcached does not serve.
	client *client
	// superseded is closed when there is a newer state.
	superseded chan struct{}
}

func (s *state) serving() bool { return s.client != nil }

// stateStore contains the latest state, for readers on any goroutine.
type stateStore struct{ latest atomic.Pointer[state] }

func newStateStore(first wire.Status) *stateStore {
	store := &stateStore{}
	store.latest.Store(&state{status: first, superseded: make(chan struct{})})
	return store
}

func (s *stateStore) load() *state { return s.latest.Load() }

// publish must be called from one goroutine only.
func (s *stateStore) publish(status wire.Status, c *client) {
	former := s.latest.Swap(&state{status: status, client: c, superseded: make(chan struct{})})
	close(former.superseded)
}
