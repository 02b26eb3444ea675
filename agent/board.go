package main

import (
	"sync/atomic"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// view is what the supervisor says of itself at one moment. It is never changed
// once published.
type view struct {
	status agentapi.Status
	// asker is nil while memcached does not serve.
	asker *asker
	// replaced is closed when there is a newer view.
	replaced chan struct{}
}

func (v *view) serves() bool { return v.asker != nil }

// board holds the newest view, for readers on any goroutine.
type board struct{ newest atomic.Pointer[view] }

func newBoard(first agentapi.Status) *board {
	b := &board{}
	b.newest.Store(&view{status: first, replaced: make(chan struct{})})
	return b
}

// publish is for one goroutine only.
func (b *board) publish(status agentapi.Status, asker *asker) {
	old := b.newest.Swap(&view{status: status, asker: asker, replaced: make(chan struct{})})
	close(old.replaced)
}

func (b *board) view() *view { return b.newest.Load() }
