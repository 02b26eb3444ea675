package connlimit

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// dial connects from an address of this machine, and returns both ends.
func dial(t *testing.T, l *Listener, from string) (client, server net.Conn) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return client, server
}

func listen(t *testing.T, limit int) *Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return &Listener{Listener: listener, Limit: limit}
}

// isOpen reports whether the server has not closed a connection.
func isOpen(t *testing.T, client net.Conn) bool {
	t.Helper()
	if err := client.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := client.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// The kubelet's probe is older than the connections of the flood.
func TestFloodOfOneAddressClosesNoConnectionOfAnother(t *testing.T) {
	l := listen(t, 4)
	probe, _ := dial(t, l, "127.0.0.2")
	var flood []net.Conn
	for range 20 {
		client, _ := dial(t, l, "127.0.0.1")
		flood = append(flood, client)
	}
	late, _ := dial(t, l, "127.0.0.3")
	for name, client := range map[string]net.Conn{"before": probe, "after": late} {
		if !isOpen(t, client) {
			t.Errorf("the flood closed the connection %s it of another address", name)
		}
	}
	open := 0
	for i, client := range flood {
		if isOpen(t, client) {
			open++
			if i < len(flood)-2 {
				t.Errorf("connection %d of the flood is open, which isn't one of the newest", i)
			}
		}
	}
	if open != 2 {
		t.Errorf("%d connections of the flood are open, want those that the limit leaves", open)
	}
}

func TestClosedAndKeptConnectionsDontCount(t *testing.T) {
	l := listen(t, 2)
	kept, server := dial(t, l, "127.0.0.1")
	Keep(server)
	_, closed := dial(t, l, "127.0.0.1")
	_ = closed.Close()
	first, _ := dial(t, l, "127.0.0.1")
	second, _ := dial(t, l, "127.0.0.1")
	for name, client := range map[string]net.Conn{"kept": kept, "first": first, "second": second} {
		if !isOpen(t, client) {
			t.Errorf("the %s connection is closed", name)
		}
	}
	third, _ := dial(t, l, "127.0.0.1")
	if isOpen(t, first) || !isOpen(t, third) || !isOpen(t, kept) {
		t.Error("one more than the limit didn't close the oldest one that counts")
	}
}
