package agent

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

func TestIdleTimeoutIsThatOfMemcachedsArguments(t *testing.T) {
	for want, words := range map[time.Duration][]string{
		0:                {"-Z", "-o", "ssl_min_version=3"},
		30 * time.Second: {"-o", "hash_algorithm=murmur3,idle_timeout=30"},
		9 * time.Second:  {"-o", "idle_timeout=30", "-o", "idle_timeout=9"},
	} {
		if got := idleTimeout(words); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}

// memcached doesn't know of a connection before its first byte, and can't close it.
func TestForwarderClosesOnlyConnectionsWithoutAFirstByte(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	memcached := listen()
	go func() {
		for {
			conn, err := memcached.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	const idle = 300 * time.Millisecond
	f := &forwarder{listener: listen(), plain: memcached.Addr().String(), idle: idle, slots: make(chan struct{}, 2)}
	go f.serve()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", f.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	echoes := func(conn net.Conn) {
		t.Helper()
		if _, err := conn.Write([]byte("mn\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
			t.Fatalf("a connection with requests was closed: %v", err)
		}
	}
	active, silent := dial(), dial()
	echoes(active)
	if _, err := silent.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
		t.Fatalf("a silent connection isn't closed after %s: %v", idle, err)
	}
	time.Sleep(2 * idle)
	echoes(active)
	echoes(dial()) // in the slot of the silent one
}
