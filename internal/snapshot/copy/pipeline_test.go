package copy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// lineServer answers "version", and each other line with HD. It closes each connection
// after so many answers.
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

// recorder is a handler that sends batches of gets and records the answers.
type recorder struct {
	batches, size int
	sent          int
	answered      []string
}

func (r *recorder) next(ctx context.Context) (*batch, error) {
	if r.sent == r.batches {
		return nil, errNoMore
	}
	b := &batch{}
	for i := range r.size {
		key := fmt.Sprintf("%d.%d", r.sent, i)
		b.text = append(b.text, "mg "+key+"\r\n"...)
		b.ends = append(b.ends, len(b.text))
		b.keys.add([]byte(key))
	}
	r.sent++
	// Like a rate limit: a batch is not lost when the context is canceled.
	return b, context.Cause(ctx)
}

func (r *recorder) readAnswer(b *batch, c *conn) error {
	if _, err := protocol.ReadHead(c.r); err != nil {
		return err
	}
	r.answered = append(r.answered, string(b.keys.at(b.answered)))
	return nil
}

func (r *recorder) complete(*batch) {}

func newTestPipeline(address string, h handler) *pipeline {
	return &pipeline{handler: h, checkServer: func(*conn) error { return nil }, target: target{address: address}, timeout: time.Second,
		log: slog.New(slog.DiscardHandler), buffer: 4096}
}

// waiting is a handler whose next batch never comes.
type waiting struct {
	*recorder
	onNext func()
}

func (w waiting) next(ctx context.Context) (*batch, error) {
	w.onNext()
	<-ctx.Done()
	return nil, ctx.Err()
}

// Wherever a connection breaks, each request is answered once, and in order.
func TestPipelineResendsRequestsWithoutAnAnswer(t *testing.T) {
	const batches, size = 20, 10
	var want []string
	for i := range batches {
		for j := range size {
			want = append(want, fmt.Sprintf("%d.%d", i, j))
		}
	}
	for _, each := range []int{1, 3, 10, 11, 25, 99, 1000} {
		r := &recorder{batches: batches, size: size}
		if err := newTestPipeline(lineServer(t, each), r).run(t.Context()); err != nil {
			t.Errorf("%d answers a connection: %v", each, err)
		}
		if !slices.Equal(r.answered, want) {
			t.Errorf("%d answers a connection: answered were %v", each, r.answered)
		}
	}
}

func TestPipelineFailsIfTheShardStaysUnreachable(t *testing.T) {
	silent := lineServer(t, 0)
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = refused.Close()
	for name, address := range map[string]string{"a server that never answers": silent, "no server": refused.Addr().String()} {
		err := newTestPipeline(address, &recorder{batches: 1, size: 1}).run(t.Context())
		if f := wire.AsFailure(err); f == nil || f.Reason != wire.ReasonShardUnreachable || f.Final {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPipelineStopsWithItsContext(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	var once sync.Once
	h := waiting{&recorder{}, func() { once.Do(func() { cancel(stopped) }) }}
	if err := newTestPipeline(lineServer(t, 1000), h).run(ctx); !errors.Is(err, stopped) {
		t.Errorf("%v", err)
	}
}

func TestPipelineStopsWhenTheShardLostItsItems(t *testing.T) {
	p := newTestPipeline(lineServer(t, 5), &recorder{batches: 10, size: 10})
	p.checkServer = func(*conn) error { return fmt.Errorf("none of them: %w", errLost) }
	if err := p.run(t.Context()); !errors.Is(err, errLost) {
		t.Errorf("%v", err)
	}
}
