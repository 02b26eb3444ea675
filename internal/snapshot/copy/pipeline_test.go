package copy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// lineServer is a shard that answers each get with HD, and closes each connection in place of the answer after so many.
func (s *setup) lineServer(each int) *shard {
	server, n := s.shard(), 0
	server.Before = func(request string) string {
		if !strings.HasPrefix(request, "mg ") {
			return ""
		}
		if n++; n > each {
			n = 0
			server.Disconnect()
		}
		return "HD\r\n"
	}
	return server
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

func (s *setup) pipeline(server *shard, h handler) *pipeline {
	return &pipeline{handler: h, checkServer: func(*conn) error { return nil }, target: newTarget(taskOf(server), 0, s.options.withDefaults()),
		timeout: time.Second, log: s.options.Log, buffer: 4096}
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
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(t)
			r := &recorder{batches: batches, size: size}
			if err := s.pipeline(s.lineServer(each), r).run(t.Context()); err != nil {
				t.Errorf("%d answers a connection: %v", each, err)
			}
			if !slices.Equal(r.answered, want) {
				t.Errorf("%d answers a connection: answered were %v", each, r.answered)
			}
		})
	}
}

func TestPipelineFailsIfTheShardStaysUnreachable(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *shard){
		"a server that never answers": func(_ *testing.T, server *shard) {
			server.at("mg", 0, server.Disconnect)
		},
		"a server that hangs": func(t *testing.T, server *shard) { server.at("mg", 0, func() { <-t.Context().Done() }) },
		"no server":           func(_ *testing.T, server *shard) { server.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				server := s.shard()
				prepare(t, server)
				err := s.pipeline(server, &recorder{batches: 1, size: 1}).run(t.Context())
				wantFailure(t, err, wire.ReasonShardUnreachable, false, "")
			})
		})
	}
}

func TestPipelineStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		var once sync.Once
		h := waiting{&recorder{}, func() { once.Do(func() { cancel(stopped) }) }}
		s := newSetup(t)
		if err := s.pipeline(s.shard(), h).run(ctx); !errors.Is(err, stopped) {
			t.Errorf("%v", err)
		}
	})
}

func TestPipelineStopsWhenTheShardLostItsItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		p := s.pipeline(s.lineServer(5), &recorder{batches: 10, size: 10})
		p.checkServer = func(*conn) error { return fmt.Errorf("none of them: %w", errLost) }
		if err := p.run(t.Context()); !errors.Is(err, errLost) {
			t.Errorf("%v", err)
		}
	})
}

// slowValue is a handler whose second batch is a value that takes longer than ioTimeout. Its head arrives with the request before,
// whose answer memcached keeps until it has the value.
type slowValue struct{ *recorder }

func (s slowValue) next(ctx context.Context) (*batch, error) {
	b, err := s.recorder.next(ctx)
	const size = 10
	switch {
	case err != nil:
	case s.sent == 1:
		b.text = fmt.Appendf(b.text, "ms large %d\r\n", size)
	default:
		b.stream = func(_ context.Context, w io.Writer) error {
			for _, part := range append(slices.Repeat([]string{"x"}, size), "\r\n") {
				pass(ioTimeout / 2)
				if _, err := io.WriteString(w, part); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return b, err
}

func TestShardIsNotSilentWhileItReceivesAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		r := &recorder{batches: 2, size: 1}
		if err := s.pipeline(s.shard(), slowValue{r}).run(t.Context()); err != nil || len(r.answered) != 2 {
			t.Errorf("answered were %v; %v", r.answered, err)
		}
	})
}
