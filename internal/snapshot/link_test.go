package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/memcache"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// lineServer answers "version", and each other line with HD, until it has answered so
// many on a connection, which it then ends.
func lineServer(t *testing.T, each int) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				for n := 0; n < each && lines.Scan(); {
					answer := "HD\r\n"
					if lines.Text() == "version" {
						answer = "VERSION 1.6.45\r\n"
					} else {
						n++
					}
					if _, err := conn.Write([]byte(answer)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// newTestLink returns a link that asks one line after the other, and what was answered.
func newTestLink(address string, batches, size int) (*link, *[]string) {
	var answered []string
	next := 0
	l := &link{
		address: address, patience: time.Second, log: slog.New(slog.DiscardHandler), window: 3, buffer: 4096,
		answered: func(*batch) {},
	}
	l.next = func(ctx context.Context) (*batch, error) {
		if next == batches {
			return nil, errNoMore
		}
		b := &batch{}
		for i := range size {
			key := fmt.Sprintf("%d.%d", next, i)
			b.text = append(b.text, "mg "+key+"\r\n"...)
			b.ends = append(b.ends, len(b.text))
			b.keys.add([]byte(key))
		}
		next++
		// As a limit: what the context's end interrupts is not lost.
		return b, context.Cause(ctx)
	}
	l.answer = func(b *batch, _ net.Conn, r *bufio.Reader) error {
		if _, err := memcache.ReadHead(r); err != nil {
			return err
		}
		answered = append(answered, string(b.keys.at(b.done)))
		return nil
	}
	return l, &answered
}

// Whenever a connection ends, each request is answered once, and in order.
func TestLinkAsksAgainWhatWasNotAnswered(t *testing.T) {
	const batches, size = 20, 10
	var want []string
	for i := range batches {
		for j := range size {
			want = append(want, fmt.Sprintf("%d.%d", i, j))
		}
	}
	for _, each := range []int{1, 3, 10, 11, 25, 99, 1000} {
		l, answered := newTestLink(lineServer(t, each), batches, size)
		if err := l.run(t.Context()); err != nil {
			t.Errorf("%d answers a connection: %v", each, err)
		}
		if !slices.Equal(*answered, want) {
			t.Errorf("%d answers a connection: answered were %v", each, *answered)
		}
	}
}

func TestLinkGivesUp(t *testing.T) {
	away := lineServer(t, 0)
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = refused.Close()
	for name, address := range map[string]string{"a server that never answers": away, "nobody": refused.Addr().String()} {
		l, _ := newTestLink(address, 1, 1)
		err := l.run(t.Context())
		if f := snapshotapi.AsFailure(err); f == nil || f.Reason != v1alpha1.ReasonShardUnreachable || f.Final {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLinkEndsWithItsContext(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	l, _ := newTestLink(lineServer(t, 1000), 1, 1)
	asked := make(chan struct{})
	var once atomic.Bool
	l.next = func(ctx context.Context) (*batch, error) {
		if once.CompareAndSwap(false, true) {
			close(asked)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	go func() { <-asked; cancel(stopped) }()
	if err := l.run(ctx); !errors.Is(err, stopped) {
		t.Errorf("%v", err)
	}
}

func TestLinkEndsWithALoss(t *testing.T) {
	l, _ := newTestLink(lineServer(t, 5), 10, 10)
	l.returned = func(net.Conn, *bufio.Reader) error { return fmt.Errorf("none of them: %w", errLost) }
	if err := l.run(t.Context()); !errors.Is(err, errLost) {
		t.Errorf("%v", err)
	}
}

func TestSample(t *testing.T) {
	var latest, any sample
	for i := range 1000 {
		latest.latest(fmt.Appendf(nil, "key-%d", i))
		any.anyOf(fmt.Appendf(nil, "key-%d", i))
	}
	for _, key := range latest.keys {
		if number := strings.TrimPrefix(string(key), "key-"); len(number) != 3 || number < "936" {
			t.Errorf("%q is not of the latest", key)
		}
	}
	old := 0
	for _, key := range any.keys {
		if len(strings.TrimPrefix(string(key), "key-")) < 3 || string(key) < "key-500" {
			old++
		}
	}
	if old < 10 || old > 54 {
		t.Errorf("%d of %d keys are of the first half", old, sampleSize)
	}
}
