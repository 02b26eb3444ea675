package handover

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// patience bounds waits in tests for what happens much sooner.
const patience = time.Minute

// quick lets tests of hangs finish early. All else is patient: on a busy machine, a side that doesn't hang can exceed quick.
var (
	quick   = timing{open: 2 * time.Second, beat: 20 * time.Millisecond, silence: 500 * time.Millisecond, step: time.Second, follow: 200 * time.Millisecond}
	patient = timing{open: patience, beat: quick.beat, silence: patience, step: patience, follow: quick.follow}
)

var testKey = bytes.Repeat([]byte("k"), keySize)

// entry is an item of a fake server.
type entry struct {
	value  string
	flags  uint32
	ttl    int64 // in seconds, 0 for none; a Unix time on a server beyond 30 days
	binary bool
}

// fakeOrigin keeps the items of a source in memory.
type fakeOrigin struct {
	mu       sync.Mutex
	items    map[string]entry
	cas      map[string]uint64
	changes  uint64
	flushes  uint32
	scans    int
	events   []string
	result   Result
	reserved int64
	// noRoom lets Reserve fail.
	noRoom bool
	// during is called in each scan after the items were listed and before they are visited, from
	// 1 for the first; onStop and onScan may return an error.
	during func(scan int)
	onStop func(context.Context) error
	onScan func(ctx context.Context, scan int) error
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

func (o *fakeOrigin) history() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.events)
}

func (o *fakeOrigin) Scan(ctx context.Context, order Order, visit func(*memfile.Item) error) (memfile.Report, error) {
	o.mu.Lock()
	o.scans++
	scan := o.scans
	keys := slices.Sorted(maps.Keys(o.items))
	report := memfile.Report{OldestLive: o.flushes}
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
	for _, key := range keys {
		o.mu.Lock()
		e, ok := o.items[key]
		cas := o.cas[key]
		o.mu.Unlock()
		if !ok {
			continue
		}
		report.Items++
		item := &memfile.Item{Key: []byte(key), Value: []byte(e.value), Flags: e.flags, TTL: e.ttl, Expires: uint32(e.ttl), Binary: e.binary, CAS: cas}
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
		return nil, false
	}
	o.reserved += bytes
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.reserved -= bytes
	}, true
}

func (o *fakeOrigin) Stop(ctx context.Context) error {
	o.record("stop")
	if o.onStop != nil {
		return o.onStop(ctx)
	}
	return nil
}

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

// fakeCache is a memcached that understands what a target sends.
type fakeCache struct {
	t        testing.TB
	listener net.Listener
	mu       sync.Mutex
	items    map[string]entry
	cas      map[string]uint64
	changes  uint64
	noCAS    bool
	automove string
	moves    []string // levels that were set
	maxValue int
	writes   int
	// before, if set, is called before each request, which it may block.
	before func(command string)
	// hidden is a key that scans miss, as when a client stores it at the same time.
	hidden string
	// scanned may change the report of a scan.
	scanned func(*memfile.Report)
}

func newCache(t testing.TB) *fakeCache {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &fakeCache{t: t, listener: listener, items: map[string]entry{}, cas: map[string]uint64{}, changes: 1 << 40, automove: "1", maxValue: 1 << 20}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
				defer stop()
				c.serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		conns.Wait()
	})
	return c
}

func (c *fakeCache) address() string { return c.listener.Addr().String() }

func (c *fakeCache) snapshot() map[string]entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.items)
}

func (c *fakeCache) serve(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		if c.before != nil {
			c.before(words[0])
		}
		answer, err := c.answer(words, r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func (c *fakeCache) answer(words []string, r io.Reader) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case strings.Join(words, " ") == "stats settings":
		return "STAT slab_automove " + c.automove + "\r\nSTAT cas_enabled " + map[bool]string{true: "no", false: "yes"}[c.noCAS] + "\r\nEND\r\n", nil
	case words[0] == "lru_crawler":
		var dump strings.Builder
		for key := range c.items {
			fmt.Fprintf(&dump, "key=%s exp=-1 la=1 cas=%d fetch=no cls=1 size=100\n", url.PathEscape(key), c.cas[key])
		}
		return dump.String() + "END\r\n", nil
	case words[0] == "flush_all":
		clear(c.items)
		return "OK\r\n", nil
	case words[0] == "stats":
		return fmt.Sprintf("STAT curr_items %d\r\nEND\r\n", len(c.items)), nil
	case words[0] == "slabs":
		c.automove = words[2]
		c.moves = append(c.moves, words[2])
		return "OK\r\n", nil
	case words[0] == "ms":
		return c.store(words, r)
	case words[0] == "md":
		key, _ := c.key(words)
		if _, ok := c.items[key]; !ok {
			return "NF\r\n", nil
		}
		delete(c.items, key)
		return "HD\r\n", nil
	}
	c.t.Errorf("the target sent %q", words)
	return "ERROR\r\n", nil
}

func (c *fakeCache) key(words []string) (key string, encoded bool) {
	if !slices.Contains(words[2:], "b") {
		return words[1], false
	}
	decoded, err := base64.StdEncoding.DecodeString(words[1])
	if err != nil {
		c.t.Errorf("the target sent %q: %v", words, err)
	}
	return string(decoded), true
}

func (c *fakeCache) store(words []string, r io.Reader) (string, error) {
	size, err := strconv.Atoi(words[2])
	if err != nil {
		c.t.Errorf("the target sent %q: %v", words, err)
	}
	value := make([]byte, size+2)
	if _, err := io.ReadFull(r, value); err != nil {
		return "", err
	}
	if !bytes.HasSuffix(value, []byte("\r\n")) {
		c.t.Errorf("a value ends with %q", value[size:])
	}
	key, encoded := c.key(words)
	c.writes++
	if size > c.maxValue {
		delete(c.items, key)
		return "SERVER_ERROR object too large for cache\r\n", nil
	}
	e := entry{value: string(value[:size]), binary: encoded}
	for _, word := range words[3:] {
		n, _ := strconv.ParseInt(word[1:], 10, 64)
		switch word[0] {
		case 'T':
			e.ttl = n
		case 'F':
			e.flags = uint32(n)
		}
	}
	c.put(key, e)
	if slices.Contains(words[3:], "c") {
		return fmt.Sprintf("HD c%d\r\n", c.changes), nil
	}
	return "HD\r\n", nil
}

func (c *fakeCache) put(key string, e entry) {
	c.items[key] = e
	c.changes++
	c.cas[key] = c.changes
}

// set is a write of a client.
func (c *fakeCache) set(key string, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, e)
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
	t       testing.TB
	address string
	stop    context.CancelFunc
	over    chan struct{}
	err     error // valid when over is closed
}

func offerOf(o Origin, items int) func(context.Context) (Offer, error) {
	return func(context.Context) (Offer, error) {
		return Offer{Origin: o, Pod: "source", Shard: "cache-0", Owner: "owner", Version: "1.6.45", Items: int64(items), CAS: true, Deadline: time.Now().Add(time.Hour)}, nil
	}
}

// start runs a source until the test is over.
func start(t testing.TB, offer func(context.Context) (Offer, error), timing timing) *running {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{t: t, address: listener.Addr().String(), stop: stop, over: make(chan struct{})}
	go func() {
		defer close(r.over)
		r.err = serve(ctx, listener, testKey, offer, logOf(t, "source"), timing)
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

func targetOf(t testing.TB, source string, c *fakeCache) Target {
	return Target{
		Source: source, Key: testKey, Pod: "target", Shard: "cache-0", Owner: "owner", Memcached: protocol.At(c.address()), Scan: c.scan,
		Log: logOf(t, "target"),
	}
}

type logWriter struct{ t testing.TB }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func logOf(t testing.TB, side string) *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{t}, nil)).With("side", side)
}

// await waits until a condition is true.
func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
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
