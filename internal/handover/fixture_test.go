package handover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// patience bounds waits in tests. All of them run in bubbles, where it takes no time.
const patience = time.Hour

const (
	sourceAddress = "10.0.0.2:11215"
	cacheAddress  = "127.0.0.1:11211"
)

var testKey = bytes.Repeat([]byte("k"), peerlink.KeySize)

// entry is an item of a fake server.
type entry struct {
	value string
	flags uint32
	// expires is a Unix time in seconds; 0 for never.
	expires int64
	binary  bool
}

// fakeOrigin keeps the items of a source in memory.
type fakeOrigin struct {
	mu      sync.Mutex
	items   map[string]entry
	cas     map[string]uint64
	changes uint64
	flushes uint32
	// flushesAt is when a flush_all with a delay deletes all items.
	flushesAt int64
	scans     int
	events    []string
	result    Result
	reserved  int64
	// noRoom lets Reserve fail.
	noRoom bool
	// during is called in each scan after the items were listed and before they are visited, from
	// 1 for the first, visiting before each visit; onStop and onScan may return an error.
	during   func(scan int)
	visiting func(scan int, item int64)
	onStop   func(context.Context) error
	onCommit func() error
	onScan   func(ctx context.Context, scan int) error
	// onRouted waits until new connections reach the target; nil: they do.
	onRouted func(context.Context)
	// read is a key that clients read all the time.
	read string
}

func newOrigin(n int) *fakeOrigin {
	o := &fakeOrigin{items: map[string]entry{}, cas: map[string]uint64{}}
	for i := range n {
		o.items[fmt.Sprintf("key-%d", i)] = entry{value: fmt.Sprintf("value-%d", i), flags: uint32(i)}
	}
	return o
}

func (o *fakeOrigin) set(key string, e entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items[key] = e
	o.changes++
	o.cas[key] = o.changes
}

// flush stands for a flush_all after which clients have stored all items again.
func (o *fakeOrigin) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushes++
}

func (o *fakeOrigin) remove(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.items, key)
}

func (o *fakeOrigin) snapshot() map[string]entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.items)
}

func (o *fakeOrigin) record(event string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, event)
}

// history returns what happened to memcached.
func (o *fakeOrigin) history() []string {
	return slices.DeleteFunc(o.calls(), func(event string) bool { return event == "commit" || event == "release" })
}

func (o *fakeOrigin) calls() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.events)
}

func (o *fakeOrigin) Scan(ctx context.Context, order Order, visit func(*memfile.Item) error) (memfile.Report, error) {
	o.mu.Lock()
	o.scans++
	scan := o.scans
	keys := slices.Sorted(maps.Keys(o.items))
	if order == HotFirst {
		slices.Reverse(keys)
	}
	report := memfile.Report{OldestLive: o.flushes, FlushesAt: o.flushesAt}
	o.mu.Unlock()
	o.record("scan")
	if order != AnyOrder {
		o.record(string(order))
	}
	if o.during != nil {
		o.during(scan)
	}
	if o.onScan != nil {
		if err := o.onScan(ctx, scan); err != nil {
			return memfile.Report{}, err
		}
	}
	for i, key := range keys {
		accessed := uint32(i + 1)
		if order == HotFirst {
			accessed = uint32(len(keys) - i)
		}
		if key == o.read {
			accessed = math.MaxUint32
		}
		o.mu.Lock()
		e, ok := o.items[key]
		cas := o.cas[key]
		o.mu.Unlock()
		if !ok {
			continue
		}
		report.Items++
		if o.visiting != nil {
			o.visiting(scan, report.Items)
		}
		item := &memfile.Item{Key: []byte(key), Value: []byte(e.value), Size: len(key) + len(e.value), Flags: e.flags, Expires: uint32(e.expires), Binary: e.binary, CAS: cas, LastAccess: accessed}
		if e.expires != 0 {
			item.ExpiresAt = time.Unix(e.expires, 0)
		}
		if err := visit(item); err != nil {
			return report, err
		}
	}
	return report, nil
}

func (o *fakeOrigin) Reserve(bytes int64) (func(), bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.noRoom {
		bytes = 0
	}
	const buffers = 1 << 20
	o.reserved += buffers + bytes
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.reserved -= buffers + bytes
	}, !o.noRoom
}

func (o *fakeOrigin) Stop(ctx context.Context) error {
	o.record("stop")
	if o.onStop != nil {
		return o.onStop(ctx)
	}
	return nil
}

// Within has a deadline at the end of the grace period, and a limit after it.
func (o *fakeOrigin) Within(grace time.Duration) (deadline, limit time.Time) {
	return time.Now().Add(grace), time.Now().Add(2 * grace)
}

func (o *fakeOrigin) AwaitRouted(ctx context.Context) {
	if o.onRouted != nil {
		o.onRouted(ctx)
	}
}

func (o *fakeOrigin) Commit() error {
	o.record("commit")
	if o.onCommit != nil {
		return o.onCommit()
	}
	return nil
}

func (o *fakeOrigin) Release() { o.record("release") }

func (o *fakeOrigin) Resume() { o.record("resume") }

func (o *fakeOrigin) Abandon() { o.record("abandon") }

func (o *fakeOrigin) Complete(result Result) {
	o.record("complete")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result = result
}

// outcome returns what happened to memcached, without the scans.
func (o *fakeOrigin) outcome() string {
	return strings.Join(slices.DeleteFunc(o.history(), func(event string) bool {
		return event == "scan" || event == string(ColdFirst) || event == string(HotFirst)
	}), ", ")
}

// fakeCache is the memcached of a target.
type fakeCache struct {
	*fake.Server
	network *fake.Network
	// hidden is a key that scans miss, as when a client stores it at the same time.
	hidden string
	// dumping is the connection with the key dump that the target reads.
	dumping atomic.Pointer[cacheConn]
	// scanned may change the report of a scan.
	scanned func(*memfile.Report)
}

func newNetwork(t *testing.T) *fake.Network {
	network := &fake.Network{}
	t.Cleanup(network.Close)
	return network
}

func newCache(t *testing.T) *fakeCache {
	network := newNetwork(t)
	return &fakeCache{Server: fake.New().Serve(network, cacheAddress), network: network}
}

// dial connects the target to it.
func (c *fakeCache) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.network.DialContext(ctx, network, address)
	return &cacheConn{Conn: conn, cache: c}, err
}

type cacheConn struct {
	net.Conn
	cache *fakeCache
	// last is the end of what was read.
	last []byte
}

var errDumping = errors.New("a deletion while a key dump is read")

func (c *cacheConn) Write(p []byte) (int, error) {
	if string(p) == protocol.DumpRequest {
		c.cache.dumping.Store(c)
	} else if c.cache.dumping.Load() != nil && bytes.HasPrefix(p, []byte("md ")) {
		return 0, errDumping
	}
	return c.Conn.Write(p)
}

func (c *cacheConn) Read(p []byte) (int, error) {
	const end = "END\r\n"
	n, err := c.Conn.Read(p)
	c.last = append(c.last, p[:n]...)
	if c.last = c.last[max(0, len(c.last)-len(end)):]; string(c.last) == end {
		c.cache.dumping.CompareAndSwap(c, nil)
	}
	return n, err
}

func (c *cacheConn) Close() error {
	c.cache.dumping.CompareAndSwap(c, nil)
	return c.Conn.Close()
}

func (c *fakeCache) snapshot() map[string]entry {
	items := map[string]entry{}
	for key, item := range c.Items() {
		items[key] = entry{value: item.Value, flags: uint32(item.Flags), expires: item.Expires, binary: item.Binary}
	}
	return items
}

// set is a write of a client.
func (c *fakeCache) set(key string, e entry) {
	c.Set(key, fake.Item{Value: e.value, Flags: uint64(e.flags)})
}

// moves are the levels of the page mover that were set.
func (c *fakeCache) moves() (levels []string) {
	for _, request := range c.Requests("slabs automove ") {
		levels = append(levels, strings.TrimPrefix(request, "slabs automove "))
	}
	return levels
}

// writes is how many items were stored.
func (c *fakeCache) writes() int {
	return len(c.Requests("ms ")) - len(c.Requests("ms memcached-operator-handover-"))
}

func (c *fakeCache) scan(_ context.Context, visit func(*memfile.Item) error) (memfile.Report, error) {
	var report memfile.Report
	for key := range c.snapshot() {
		if key == c.hidden {
			continue
		}
		report.Items++
		if err := visit(&memfile.Item{Key: []byte(key)}); err != nil {
			return report, err
		}
	}
	if c.scanned != nil {
		c.scanned(&report)
	}
	return report, nil
}

// running is a source in a test.
type running struct {
	t    testing.TB
	stop context.CancelFunc
	over chan struct{}
	err  error // valid when over is closed
}

func offerOf(o Origin, items int) func(context.Context) (Offer, error) {
	return func(context.Context) (Offer, error) {
		state := func() map[string][]byte {
			return map[string][]byte{"known": bytes.Repeat([]byte{255}, MaxState), "large": make([]byte, MaxState+1)}
		}
		return Offer{Origin: o, State: state, Pod: "source", Shard: "cache-0", Owner: "owner", Version: "1.6.45", Items: int64(items), CAS: true, Deadline: time.Now().Add(time.Hour)}, nil
	}
}

// start runs a source until the test is over.
func start(t testing.TB, network *fake.Network, offer func(context.Context) (Offer, error)) *running {
	t.Helper()
	return startOn(t, network.Listen(sourceAddress), offer)
}

func startOn(t testing.TB, listener net.Listener, offer func(context.Context) (Offer, error)) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{t: t, stop: stop, over: make(chan struct{})}
	go func() {
		defer close(r.over)
		r.err = Serve(ctx, listener, testKey, func(ctx context.Context, _ bool) (Offer, error) { return offer(ctx) }, logOf(t, "source"))
	}()
	t.Cleanup(func() {
		stop()
		r.wait()
	})
	return r
}

// wait waits until the source returns.
func (r *running) wait() {
	r.t.Helper()
	select {
	case <-r.over:
		if r.err != nil {
			r.t.Errorf("the source returned %v", r.err)
		}
	case <-time.After(patience):
		r.t.Fatal("the source does not return")
	}
}

func targetOf(t testing.TB, c *fakeCache) Target {
	return Target{
		Source: sourceAddress, DialContext: c.network.DialContext, Key: testKey, Pod: "target", Shard: "cache-0", Owner: "owner",
		Memcached: protocol.Server{Address: cacheAddress, DialContext: c.dial}, Scan: c.scan, Log: logOf(t, "target"),
	}
}

// receiveSoon is Receive, again while the source is busy, as agents do.
func receiveSoon(t testing.TB, target Target) (result Result, err error) {
	t.Helper()
	within(t, "the target", func() {
		for err = ErrBusy; errors.Is(err, ErrBusy); {
			if result, err = Receive(t.Context(), target); errors.Is(err, ErrBusy) {
				_ = peerlink.Sleep(t.Context(), peerlink.Silence)
			}
		}
	})
	return result, err
}

type logWriter struct{ t testing.TB }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func logOf(t testing.TB, side string) *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{t}, nil)).With("side", side)
}

// within fails if f doesn't return.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		f()
	}()
	select {
	case <-finished:
	case <-time.After(patience):
		t.Fatalf("%s does not return", what)
	}
}

func mustEqual(t testing.TB, got, want map[string]entry) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	shown := 0
	for key, e := range want {
		if other, ok := got[key]; (!ok || other != e) && shown < 5 {
			t.Errorf("%.40q: %.60q, want %.60q", key, fmt.Sprint(other), fmt.Sprint(e))
			shown++
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok && shown < 10 {
			t.Errorf("%.40q should not be there", key)
			shown++
		}
	}
	t.Errorf("%d items, want %d", len(got), len(want))
}

var errTest = errors.New("an error of the test")
