package connlimit

import (
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

// testConn is a connection of a client at an address.
type testConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *testConn) Close() error { c.closed = true; return nil }

func (c *testConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1} }

// testListener accepts the connection that the test sets.
type testListener struct {
	net.Listener
	next net.Conn
}

func (l *testListener) Accept() (net.Conn, error) { return l.next, nil }

// accept returns a connection from an address, and what the server gets.
func accept(t *testing.T, l *Listener, from string) (client *testConn, server net.Conn) {
	t.Helper()
	client = &testConn{from: from}
	l.Listener = &testListener{next: client}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// The kubelet's probe is older than the connections of the flood.
func TestFloodOfOneAddressClosesNoConnectionOfAnother(t *testing.T) {
	l := &Listener{Limit: 4}
	probe, _ := accept(t, l, "127.0.0.2")
	var flood []*testConn
	for range 20 {
		client, _ := accept(t, l, "127.0.0.1")
		flood = append(flood, client)
	}
	late, _ := accept(t, l, "127.0.0.3")
	if probe.closed || late.closed {
		t.Errorf("the flood closed a connection of another address: before it %t, after it %t", probe.closed, late.closed)
	}
	for i, client := range flood {
		if newest := i >= len(flood)-2; client.closed == newest {
			t.Errorf("connection %d of the flood is closed: %t; the limit leaves the two newest", i, client.closed)
		}
	}
}

func TestClosedAndKeptConnectionsDontCount(t *testing.T) {
	l := &Listener{Limit: 2}
	kept, server := accept(t, l, "127.0.0.1")
	if Keep(server) != net.Conn(kept) {
		t.Error("the connection that doesn't count is not the one that was accepted")
	}
	_, closed := accept(t, l, "127.0.0.1")
	_ = closed.Close()
	first, _ := accept(t, l, "127.0.0.1")
	second, _ := accept(t, l, "127.0.0.1")
	if kept.closed || first.closed || second.closed {
		t.Errorf("closed: kept %t, first %t, second %t", kept.closed, first.closed, second.closed)
	}
	if open, _ := l.Counts(); open != 2 {
		t.Errorf("%d connections count", open)
	}
	third, _ := accept(t, l, "127.0.0.1")
	if !first.closed || second.closed || third.closed || kept.closed {
		t.Error("one more than the limit didn't close the oldest one that counts")
	}
}

// failing is a listener without a file descriptor for a connection, twice.
type failing struct {
	net.Listener
	failures int
}

func (l *failing) Addr() net.Addr { return &net.TCPAddr{Port: 11213} }

func (l *failing) Accept() (net.Conn, error) {
	if l.failures++; l.failures <= 2 {
		return nil, syscall.EMFILE
	}
	if l.failures == 3 {
		return &testConn{}, nil
	}
	return nil, net.ErrClosed
}

func TestServerThatCanNotAcceptSaysSoOnceAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		served := 0
		Serve(&failing{}, slog.New(slog.NewTextHandler(&text, nil)), func(net.Conn) { served++ })
		if served != 1 || strings.Count(text.String(), "too many open files") != 1 {
			t.Errorf("served %d connections, and logged:\n%s", served, text.String())
		}
	})
}
