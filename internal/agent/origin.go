package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// origin lets the goroutine of a handover read memcached's items, and stop and start
// memcached by requests to the supervisor.
type origin struct {
	requests chan<- originRequest
	dataDir  string

	// The supervisor sets these when the handover begins.
	drainUntil time.Time
	client     *process.Client
	arguments  []string
	version    string

	// stopped is whether memcached has saved its items and exited.
	stopped bool
	// clock is memcached's, according to the best reading since it started.
	clock protocol.Clock
}

// offer returns an error if the memory file can't be read as memcached does.
func (o *origin) offer(ctx context.Context, podUID, shard, owner string) (handover.Offer, error) {
	file, err := datadir.OpenMemory(o.dataDir, o.arguments, o.version)
	if err != nil {
		return handover.Offer{}, err
	}
	defer file.Close()
	if err := file.Verify(ctx, o.client.Server); err != nil {
		return handover.Offer{}, fmt.Errorf("comparing the memory file with memcached: %w", err)
	}
	clock, err := memfile.ClockOfRunning(ctx, o.client.Server)
	if err != nil {
		return handover.Offer{}, fmt.Errorf("reading memcached's clock: %w", err)
	}
	o.clock = clock.Clock
	stats, err := o.client.GeneralStats(ctx)
	if err != nil {
		return handover.Offer{}, fmt.Errorf("counting the items: %w", err)
	}
	answers, err := o.client.Server.QueryStats(ctx, "stats settings")
	if err != nil {
		return handover.Offer{}, fmt.Errorf("reading memcached's settings: %w", err)
	}
	settings, err := protocol.ParseSettings(answers[0])
	if err != nil {
		return handover.Offer{}, err
	}
	return handover.Offer{
		Origin: o, CAS: settings.CAS, Pod: podUID, Shard: shard, Owner: owner, Version: o.version, Items: stats.Items, Bytes: stats.Bytes,
		Deadline: o.drainUntil.Add(-endOfHandover), Limit: o.drainUntil.Add(contentTimeout),
	}, nil
}

// ask returns the supervisor's answer.
func (o *origin) ask(event originEvent, result handover.Result) error {
	request := originRequest{origin: o, event: event, result: result, reply: make(chan error, 1)}
	o.requests <- request
	return <-request.reply
}

// Scan visits all items.
func (o *origin) Scan(ctx context.Context, order handover.Order, visit func(*memfile.Item) error) (memfile.Report, error) {
	file, err := datadir.OpenMemory(o.dataDir, o.arguments, o.version)
	if err != nil {
		return memfile.Report{}, err
	}
	defer file.Close()
	var clock memfile.Clock
	if o.stopped {
		clock, err = datadir.SavedClock(o.dataDir)
	} else {
		clock, err = memfile.ClockOfRunning(ctx, o.client.Server)
	}
	if err != nil {
		return memfile.Report{}, fmt.Errorf("reading memcached's clock: %w", err)
	}
	clock.Clock = clock.Best(o.clock)
	o.clock = clock.Clock
	scan := file.Scan
	switch order {
	case handover.ColdFirst:
		scan = file.ScanColdFirst
	case handover.HotFirst:
		scan = file.ScanHotFirst
	}
	return scan(clock, visit)
}

// Stop stops memcached. The supervisor limits the time of a stop and does not interrupt
// it, so it ignores the context.
func (o *origin) Stop(context.Context) error {
	if err := o.ask(originStops, handover.Result{}); err != nil {
		return fmt.Errorf("stopping memcached: %w", err)
	}
	o.stopped = true
	return nil
}

// Resume lets memcached serve again with its items.
func (o *origin) Resume() { _ = o.ask(originResumes, handover.Result{}) }

// Abandon stops memcached and ends this agent: another pod may have served since.
func (o *origin) Abandon() { _ = o.ask(originAbandons, handover.Result{}) }

// Complete ends this agent.
func (o *origin) Complete(result handover.Result) { _ = o.ask(originCompletes, result) }

// Reserve lets a handover use that much memory until it calls release, and returns false
// if the container has no room for it.
func (o *origin) Reserve(bytes int64) (release func(), ok bool) { return memory.Reserve(bytes) }
