package scaling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

var testKey = bytes.Repeat([]byte("k"), peerlink.KeySize)

// A source has nothing to do with the keys of others, and says why. What another pod can cure isn't final.
func TestSourceRejectsWhatItCannotServe(t *testing.T) {
	right := hello{Versions: []int{protocolVersion}, Owner: "owner", Source: 1, Target: 3, Ring: ring.Jump, From: servers(3), To: servers(4)}
	for name, c := range map[string]struct {
		change func(*hello)
		says   string
		final  bool
	}{
		"another version":   {func(h *hello) { h.Versions = []int{protocolVersion + 1} }, "the target knows the versions [2], and the source 1", true},
		"another Memcached": {func(h *hello) { h.Owner = "other" }, "another Memcached", true},
		"another shard":     {func(h *hello) { h.Source = 2 }, "this pod is of shard 1, and not of 2", false},
		"itself":            {func(h *hello) { h.Target = 1 }, "this pod is of shard 1", false},
		"an unknown ring":   {func(h *hello) { h.Ring = "Maglev" }, "Maglev", true},
	} {
		t.Run(name, func(t *testing.T) {
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
		})
	}
	if _, err := Service(testKey[1:], nil); err == nil {
		t.Error("a key that is too short is used")
	}
}

func TestFailureFitsIntoAFrame(t *testing.T) {
	for _, message := range []string{"short", strings.Repeat("x", 9000), strings.Repeat("\x01", 9000), strings.Repeat("\xff", 9000)} {
		near, far := fake.Pipe()
		go func() {
			_ = peerlink.New(near, frames).Send(kindFailed, failureOf(fmt.Errorf("%w: %s", ErrUnproven, message)))
		}()
		if _, err := peerlink.Expect[offer](peerlink.New(far, frames), kindOffer); !errors.Is(err, ErrUnproven) || strings.Count(err.Error(), ErrUnproven.Error()) != 1 {
			t.Errorf("%.9q: %v", message, err)
		}
	}
}
