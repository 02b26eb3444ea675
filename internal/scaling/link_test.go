package scaling

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

var testKey = bytes.Repeat([]byte("k"), peerlink.KeySize)

// A source has nothing to do with the keys of others, and says why. What another pod can cure isn't final.
func TestSourceRejectsWhatItCannotServe(t *testing.T) {
	right := hello{Owner: "owner", Source: 1, Target: 3, Change: Change{ring.Jump, servers(3), servers(4)}}
	for name, c := range map[string]struct {
		change func(*hello)
		says   string
		final  bool
	}{
		"another Memcached": {func(h *hello) { h.Owner = "other" }, "another Memcached", true},
		"another shard":     {func(h *hello) { h.Source = 2 }, "this pod is of shard 1, and not of 2", false},
		"itself":            {func(h *hello) { h.Target = 1 }, "this pod is of shard 1", false},
		"an unknown ring":   {func(h *hello) { h.Change.Ring = "Maglev" }, "Maglev", true},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			service, err := Service(testKey, func() (Memcached, error) { return Memcached{Owner: "owner", Ordinal: 1}, nil })
			if err != nil {
				t.Fatal(err)
			}
			near, far := fake.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				service.Handle(context.Background(), far, slog.New(slog.DiscardHandler))
			}()
			link := peerlink.New(near, frames)
			request := right
			c.change(&request)
			if err := link.Send(kindHello, request); err != nil {
				t.Fatal(err)
			}
			_, err = peerlink.Expect[offer](link, kindOffer)
			if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrImpossible) != c.final {
				t.Errorf("%v, want %q, final: %t", err, c.says, c.final)
			}
			<-done
			link.Close()
		}))
	}
	if _, err := Service(testKey[1:], nil); err == nil {
		t.Error("a key that is too short is used")
	}
}

func TestSourceStopsTheScanForATargetThatHasLeft(t *testing.T) {
	bubble(func(t *testing.T) {
		const items = 1000
		visited := 0
		source := Memcached{Owner: "owner", Ordinal: 0, Run: func() string { return "1" }, Scan: func(ctx context.Context, _ handover.Order, _ func([]byte) bool, visit func(*memfile.Item) error) (report memfile.Report, err error) {
			for ; visited < items && err == nil; visited++ {
				_ = peerlink.Sleep(ctx, time.Second)
				err = visit(&memfile.Item{Key: []byte("key")})
			}
			return report, err
		}}
		for _, order := range []handover.Order{counted, verified, handover.AnyOrder} {
			service, err := Service(testKey, func() (Memcached, error) { return source, nil })
			if err != nil {
				t.Fatal(err)
			}
			near, far := fake.Pipe()
			link := peerlink.New(near, frames)
			visited = 0
			go func() {
				_ = link.Send(kindHello, hello{Owner: "owner", Target: 1, Change: Change{ring.Jump, servers(1), servers(2)}, Order: order})
				link.Close()
			}()
			if service.Handle(t.Context(), far, slog.New(slog.DiscardHandler)); visited > 10 {
				t.Errorf("%s: it visits %d items for a target that has left", order, visited)
			}
		}
	})(t)
}

// All shards that stay get keys of one that leaves. Each scan needs memory of its container.
func TestSourceScansForFewTargetsAtATime(t *testing.T) {
	bubble(func(t *testing.T) {
		const targets = 20
		var scans, most atomic.Int64
		source := Memcached{Owner: "owner", Ordinal: targets, Run: func() string { return "1" }, Scan: func(ctx context.Context, _ handover.Order, _ func([]byte) bool, _ func(*memfile.Item) error) (memfile.Report, error) {
			now := scans.Add(1)
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
			}
			defer scans.Add(-1)
			return memfile.Report{}, peerlink.Sleep(ctx, peerlink.Silence)
		}}
		service, err := Service(testKey, func() (Memcached, error) { return source, nil })
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		for target := range targets {
			near, far := fake.Pipe()
			running.Go(func() { service.Handle(t.Context(), far, slog.New(slog.DiscardHandler)) })
			running.Go(func() {
				link := peerlink.New(near, frames)
				defer link.Close()
				err := link.Send(kindHello, hello{Owner: "owner", Source: targets, Target: target, Change: Change{ring.Jump, servers(targets + 1), servers(targets)}, Order: counted})
				if err == nil {
					_, err = peerlink.Expect[offer](link, kindOffer)
				}
				if err != nil {
					t.Errorf("target %d: %v", target, err)
				}
			})
		}
		if running.Wait(); most.Load() != maxScans {
			t.Errorf("%d scans at a time, want %d", most.Load(), maxScans)
		}
	})(t)
}

func TestFailureFitsIntoAFrame(t *testing.T) {
	bubble(func(t *testing.T) {
		for _, message := range []string{"short", strings.Repeat("x", 9000), strings.Repeat("\x01", 9000), strings.Repeat("\xff", 9000)} {
			near, far := fake.Pipe()
			go func() { _ = peerlink.New(near, frames).Fail(fmt.Errorf("%w: %s", ErrUnproven, message)) }()
			if _, err := peerlink.Expect[offer](peerlink.New(far, frames), kindOffer); !errors.Is(err, ErrUnproven) || strings.Count(err.Error(), ErrUnproven.Error()) != 1 {
				t.Errorf("%.9q: %v", message, err)
			}
			_, _ = near.Close(), far.Close()
		}
	})(t)
}

// Any input is either frames within their limits or a documented error.
func FuzzFrames(f *testing.F) {
	entries := appendEntry(appendEntry(nil, &memfile.Item{Key: []byte("key"), CAS: 5, Expires: 1000, Binary: true}), &memfile.Item{Key: []byte("k")})
	f.Add(append(peerlink.AppendHead(nil, kindList, len(entries)), entries...))
	f.Add(append(peerlink.AppendHead(nil, kindList, len(entries)-1), entries[:len(entries)-1]...))
	f.Add(append(peerlink.AppendHead(nil, kindFailed, 19), `{"Code":"Unproven"}`...))
	f.Add(append(peerlink.AppendHead(nil, kindOffer, 11), `{"Run":"1"}`...))
	f.Add(peerlink.AppendHead(nil, kindList, 1<<30))
	f.Fuzz(func(t *testing.T, input []byte) {
		r := bufio.NewReader(bytes.NewReader(input))
		for {
			if err := parse(t, r); err != nil {
				if !errors.Is(err, peerlink.ErrFrame) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("unexpected error: %v", err)
				}
				return
			}
		}
	})
}

func parse(t *testing.T, r *bufio.Reader) error {
	k, size, err := frames.ReadHead(r)
	if err != nil {
		return err
	}
	switch k {
	case kindHello:
		_, err = peerlink.ReadMessage[hello](r, size)
	case kindOffer:
		_, err = peerlink.ReadMessage[offer](r, size)
	case kindFailed:
		if err = frames.ReadFailure(r, size); err == nil {
			t.Error("a failure is no error")
		} else if errors.Is(err, ErrUnproven) || errors.Is(err, ErrImpossible) || strings.HasPrefix(err.Error(), "the source failed") {
			return nil
		}
	case kindList:
		list := make([]byte, size)
		if _, err := io.ReadFull(r, list); err != nil {
			return protocol.Unexpected(err)
		}
		var again []byte
		err = eachEntry(list, func(found *memfile.Item) error {
			again = appendEntry(again, found)
			return nil
		})
		if err == nil && len(again) != size {
			t.Errorf("the entries of %q are %q", list, again)
		}
	}
	return err
}
