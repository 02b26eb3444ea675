package protocol

import (
	"bufio"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
)

// serve answers each line that clients send with the next of answers, and then no
// more. test/process tests with real servers.
func serve(t *testing.T, answers ...string) Server {
	t.Helper()
	network := &fake.Network{}
	listener := network.Listen("cache")
	t.Cleanup(func() { _ = listener.Close() })
	next := make(chan string, len(answers))
	for _, answer := range answers {
		next <- answer
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					select {
					case answer := <-next:
						_, _ = conn.Write([]byte(answer))
					default:
					}
				}
			}()
		}
	}()
	return Server{Address: "cache", DialContext: network.DialContext}
}

func dial(t *testing.T, server Server) *Conn {
	t.Helper()
	conn, err := server.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestCallStopsWithItsContext(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	bounded, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	for name, ctx := range map[string]context.Context{"cancelled": cancelled, "deadline": bounded} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, serve(t))
			if _, err := conn.Version(ctx); err == nil {
				t.Error("a silent server returned a version")
			}
		})
	}
}

func TestConnectionIsClosedAfterAnError(t *testing.T) {
	t.Parallel()
	conn := dial(t, serve(t, "CLIENT_ERROR bad command line format\r\n\r\n", "VERSION 1.6.45\r\n"))
	_, err := conn.Version(t.Context())
	if !IsAnswer(err) {
		t.Fatalf("got %v", err)
	}
	if _, err := conn.Version(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after an error: %v", err)
	}
}
