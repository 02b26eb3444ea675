package main

import (
	"context"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

// asker asks one run of memcached, and remembers what it counted. It keeps its connection, so that it is answered
// also when clients hold all others. It serves any number of callers, one at a
// time.
type asker struct {
	endpoint endpoint
	recent   *recent
	// turn holds one token; who has it may use conn.
	turn   chan struct{}
	conn   *memcache.Conn
	closed bool
}

func newAsker(e endpoint) *asker {
	a := &asker{endpoint: e, recent: newRecent(time.Now()), turn: make(chan struct{}, 1)}
	a.turn <- struct{}{}
	return a
}

// general returns memcached's general stats.
func (a *asker) general(ctx context.Context) (general memcache.General, err error) {
	err = a.do(ctx, func(conn *memcache.Conn) (err error) {
		general, err = conn.General(ctx)
		return err
	})
	return general, err
}

// answers returns nil when memcached answers at all: an error that it gives,
// such as that there are too many connections or no password, is an answer.
func (a *asker) answers(ctx context.Context) error {
	if !a.endpoint.text {
		conn, err := new(net.Dialer).DialContext(ctx, a.endpoint.network, a.endpoint.address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	err := a.do(ctx, func(conn *memcache.Conn) error {
		_, err := conn.Version(ctx)
		return err
	})
	if memcache.IsAnswer(err) {
		return nil
	}
	return err
}

// do calls f with the connection; a second time with a new one when the kept
// one turned out dead, as after memcached's idle_timeout.
func (a *asker) do(ctx context.Context, f func(*memcache.Conn) error) error {
	select {
	case <-a.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { a.turn <- struct{}{} }()
	if a.closed {
		return memcache.ErrClosed
	}
	for {
		kept := a.conn != nil
		if !kept {
			conn, err := memcache.Dial(ctx, a.endpoint.network, a.endpoint.address)
			if err != nil {
				return err
			}
			a.conn = conn
		}
		err := f(a.conn)
		if err == nil {
			return nil
		}
		// A connection closes itself after an error.
		a.conn = nil
		if !kept || memcache.IsAnswer(err) || ctx.Err() != nil {
			return err
		}
	}
}

// knock opens a connection and closes it.
func (a *asker) knock() {
	conn, err := net.DialTimeout(a.endpoint.network, a.endpoint.address, time.Second)
	if err == nil {
		_ = conn.Close()
	}
}

// close is called when memcached has ended. Whoever asks later gets an error.
func (a *asker) close() {
	<-a.turn
	a.closed = true
	if a.conn != nil {
		_ = a.conn.Close()
	}
	a.turn <- struct{}{}
}
