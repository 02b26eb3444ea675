package agent

import (
	"log/slog"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Clients may occupy all connections before the agent gets one.
func TestFirstResponseIsRetriedWhileThereAreTooManyConnections(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.memcached.set(func(b *behavior) { b.busy = true })
		started, err := p.memcached.start("memcached", []string{"-e", memoryPath(p.config.dataDir)}, protocol.At("127.0.0.1:11211"), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		responses := make(chan firstResponse, 1)
		go awaitFirstResponse(started, responses)
		p.pass(errorTimeout / 2)
		fake := p.memcached.latest()
		fake.change(func() { fake.busy, fake.items = false, 7 })
		if r := <-responses; r.hangs || r.stats == nil || r.stats.Items != 7 {
			t.Errorf("%+v", r)
		}
		fake.end(0)
	})
}

func TestMemcachedsOwnExitCodeIsKept(t *testing.T) {
	path := program(t, "echo one >&2; echo two >&2; exit 3")
	p, err := startProcess(path, nil, protocol.At("127.0.0.1:1"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	<-p.done
	if message, code := p.exitReason(); message != "memcached exited unexpectedly with code 3: two" || code != 3 {
		t.Errorf("%q, %d", message, code)
	}
	if _, err := startProcess(path+"-missing", nil, protocol.At("127.0.0.1:1"), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a missing program starts")
	}
}
