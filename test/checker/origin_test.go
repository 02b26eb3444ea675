package checker

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

var handoverKey = bytes.Repeat([]byte("k"), 32)

// fileOrigin hands over the memory file of a memcached that runs without an agent.
type fileOrigin struct {
	File    *memfile.File
	Address string
	Dir     string // of File
	OnStop  func()
	stopped bool
	// Before is called before each scan.
	Before func(scan int)
	scans  int
	// Reserved is the memory of the table and of the first scan, in bytes.
	Reserved int64
}

func (o *fileOrigin) Scan(ctx context.Context, order handover.Order, visit func(*memfile.Item) error) (memfile.Report, error) {
	o.scans++
	if o.Before != nil {
		o.Before(o.scans)
	}
	scan := o.File.Scan
	if order == handover.ColdFirst {
		scan = o.File.ScanColdFirst
	}
	clock, err := o.clock(ctx)
	if err != nil {
		return memfile.Report{}, err
	}
	return scan(clock, visit)
}

func (o *fileOrigin) clock(ctx context.Context) (memfile.Clock, error) {
	if !o.stopped {
		return memfile.ClockOfRunning(ctx, protocol.At(o.Address))
	}
	return datadir.SavedClock(o.Dir)
}

func (o *fileOrigin) Reserve(bytes int64) (func(), bool) {
	o.Reserved = bytes
	return func() {}, true
}

func (o *fileOrigin) Stop(context.Context) error {
	o.OnStop()
	o.stopped = true
	return nil
}

func (o *fileOrigin) Commit() error { return nil }

func (o *fileOrigin) Release() {}

func (o *fileOrigin) Resume() {}

func (o *fileOrigin) Abandon() { panic("the target is not lost") }

func (o *fileOrigin) AwaitRouted(context.Context) { panic("the target does not serve before the end") }

func (o *fileOrigin) Within(time.Duration) (deadline, limit time.Time) {
	panic("no pod is deleted with a shorter grace period")
}

func (o *fileOrigin) Complete(handover.Result) {}

// serveHandover runs a source until the test is over, and returns its address.
func serveHandover(t testing.TB, o handover.Origin, items int64, log *slog.Logger) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	offer := func(context.Context, bool) (handover.Offer, error) {
		return handover.Offer{Origin: o, Pod: "source", Shard: "cache-0", Items: items, CAS: true, Deadline: time.Now().Add(time.Hour)}, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- handover.Serve(ctx, listener, handoverKey, offer, log) }()
	t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			t.Errorf("the source returned %v", err)
		}
	})
	return listener.Addr().String()
}

func scanRunning(file *memfile.File, address string) func(context.Context, func(*memfile.Item) error) (memfile.Report, error) {
	return func(ctx context.Context, visit func(*memfile.Item) error) (memfile.Report, error) {
		clock, err := memfile.ClockOfRunning(ctx, protocol.At(address))
		if err != nil {
			return memfile.Report{}, err
		}
		return file.Scan(clock, visit)
	}
}
