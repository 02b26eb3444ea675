package agent

import (
	"log/slog"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Clients may occupy all connections before the agent gets one.
func TestFirstResponseIsRetriedWhileThereAreTooManyConnections(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.memcached.set(func(b *behavior) { b.busy = true })
		started, err := p.memcached.start("memcached", []string{"-e", datadir.MemoryPath(p.config.dataDir)}, protocol.At("127.0.0.1:11211"), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		responses := make(chan process.FirstResponse, 1)
		go process.AwaitFirstResponse(started, responses)
		p.pass(time.Second)
		fake := p.memcached.latest()
		fake.add(7)
		fake.change(func() { fake.busy = false })
		if r := <-responses; r.Hangs || r.Stats == nil || r.Stats.Items != 7 {
			t.Errorf("%+v", r)
		}
		fake.end(0)
	})
}
