package checker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
	"github.com/memcached-operator/memcached-operator/internal/scaling"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

const (
	// scalingKeys is how many keys the clients use, and a fourth as many counters.
	scalingKeys = 400
	// scalingPause is the longest pause of each of the twelve clients after an operation.
	scalingPause = 8 * time.Millisecond
	// scalingMixed is how long the clients' lists differ.
	scalingMixed = 1500 * time.Millisecond
)

var handoverKey = bytes.Repeat([]byte("k"), 32)

// scaled are shards without agents and clients that know the newest value of each key, while the number of shards changes.
type scaled struct {
	t       *testing.T
	name    string
	random  *mathrand.Rand
	version string
	shards  []*scaledShard
	// before and after are the lists of the clients, now which of them they use: oldList, newList, or both.
	before, after scaledList
	mode          atomic.Int32
	// anyList lets each operation choose a list while both are used. Otherwise each client switches once.
	anyList bool
	keys    []*scaledKey
	totals  scaledTotals
	notes   notes
}

const (
	oldList = iota
	bothLists
	// newList: no client uses the old one. After closed, none may read an old value.
	newList
	closed
)

type scaledList struct {
	servers []string
	ring    ring.Ring
}

// scaledShard is a memcached and the port of its agent.
type scaledShard struct {
	*pods.Cache
	version string
	ordinal int
	run     atomic.Int64
	address string
	cuts    wire
}

type scaledKey struct {
	knownKey
	mu      sync.Mutex
	counter bool
	expires time.Time
	// deleted is when a client deleted it last.
	deleted time.Time
	moves   bool
	// shared is whether several clients change it at the same time. writes are those since the last check.
	shared bool
	writes []scaledWrite
}

// scaledWrite is a write with an answer. The value is empty if it is a deletion.
type scaledWrite struct {
	value      string
	began, end time.Time
}

// scaledTotals are the figures of a run.
type scaledTotals struct {
	mu                                           sync.Mutex
	reads, misses, stale, counters, left, expiry int
	lasting                                      map[string]int
	oldest                                       time.Duration
	// undeleted is the oldest of the values whose key was not deleted since. A deletion on one side can leave no trace.
	undeleted time.Duration
}

func (s *scaledTotals) add(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *scaledTotals) String() string {
	return fmt.Sprintf("of %d reads of moved keys while lists differed, %d older values, the oldest %.2f s, or %.2f s of keys that were not deleted since, and %d misses; %d increments of old values; lasting %v; %d moved keys left, %d wrong expiries",
		s.reads, s.stale, s.oldest.Seconds(), s.undeleted.Seconds(), s.misses, s.counters, s.lasting, s.left, s.expiry)
}

func newScaled(t *testing.T, n int, name, version string) *scaled {
	c := &scaled{t: t, name: name, version: version, random: mathrand.New(mathrand.NewPCG(uint64(n), 7)), totals: scaledTotals{lasting: map[string]int{}}, anyList: n/4%2 == 1}
	for i := range scalingKeys {
		for _, counter := range []bool{false, true} {
			if !counter || i%4 == 0 {
				c.keys = append(c.keys, &scaledKey{knownKey: knownKey{name: fmt.Sprintf("key-%d-%t", i, counter), replaced: map[string]time.Time{}}, counter: counter, shared: !counter && i%4 == 1})
			}
		}
	}
	return c
}

func (c *scaled) list(n int) scaledList {
	var l scaledList
	for i := range n {
		l.servers = append(l.servers, fmt.Sprintf("cache-%d.ns.svc:11211", i))
	}
	l.ring, _ = ring.New(c.name, l.servers)
	return l
}

// start starts a shard whose agent serves the moves of keys.
func (c *scaled) start(ordinal int) {
	c.t.Helper()
	s := &scaledShard{Cache: pods.StartCache(c.t, c.version), ordinal: ordinal, version: c.version}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	pods.Must(c.t, err)
	s.address = listener.Addr().String()
	service, err := scaling.Service(handoverKey, func() (scaling.Memcached, error) { return s.memcached(), nil })
	pods.Must(c.t, err)
	ctx, stop := context.WithCancel(c.t.Context())
	over := make(chan error, 1)
	go func() {
		over <- handover.Serve(ctx, listener, handoverKey, func(context.Context, bool) (handover.Offer, error) {
			return handover.Offer{}, handover.ErrNotStarted
		}, slog.New(slog.NewTextHandler(s.Log, nil)), service)
	}()
	c.t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			c.t.Error(err)
		}
	})
	c.shards = append(c.shards, s)
}

func (s *scaledShard) memcached() scaling.Memcached {
	return scaling.Memcached{
		Server: protocol.At(s.Address()), Owner: "owner", Ordinal: s.ordinal,
		Run:     func() string { return strconv.FormatInt(s.run.Load(), 10) },
		Reserve: func(int64) (func(), bool) { return func() {}, true },
		Dump: func(ctx context.Context, visit func(protocol.Listed) error) error {
			return protocol.At(s.Address()).Dump(ctx, peerlink.Silence, visit)
		},
		Scan: func(ctx context.Context, order handover.Order, which func([]byte) bool, visit func(*memfile.Item) error) (memfile.Report, error) {
			clock, clockErr := memfile.ClockOfRunning(ctx, protocol.At(s.Address()))
			layout, layoutErr := memfile.LayoutOf(nil, s.version)
			file, err := memfile.Open(filepath.Join(s.Dir, "memory"), layout)
			if err = errors.Join(clockErr, layoutErr, err); err != nil {
				return memfile.Report{}, err
			}
			defer file.Close()
			file.Which = func(item *memfile.Item) bool { return which(item.Key) }
			if order == handover.ColdFirst {
				return file.ScanColdFirst(clock, visit)
			}
			return file.Scan(clock, visit)
		},
	}
}

// crash lets memcached start again without its items.
func (s *scaledShard) crash() {
	s.run.Add(1)
	s.Kill()
	_ = os.Remove(filepath.Join(s.Dir, "memory")) // as the agent does
	s.Restart()
}

// client is one with connections of its own to all shards.
type scaledClient struct {
	*scaled
	random *mathrand.Rand
	conns  map[int]*bothConn
	serial int
	id     int
	// after is the share of the time with both lists after which it switches.
	after    float64
	switched atomic.Bool
}

func (c *scaledClient) do(shard int, request string) (line, value string, err error) {
	conn := c.conns[shard]
	if conn == nil {
		if conn, err = dialBoth(c.shards[shard].Address()); err != nil {
			return "", "", err
		}
		c.conns[shard] = conn
	}
	if line, value, err = conn.do(request); err != nil {
		_ = conn.conn.Close()
		delete(c.conns, shard)
	}
	return line, value, err
}

// choose returns the shard of a key by the list that the client uses.
func (c *scaledClient) choose(key string) int {
	list := c.scaled.before
	switch mode := c.mode.Load(); {
	case mode >= newList, mode == bothLists && c.anyList && c.random.IntN(2) == 0, mode == bothLists && !c.anyList && c.switched.Load():
		list = c.scaled.after
	}
	return list.ring.Shard([]byte(key))
}

func (c *scaledClient) step() {
	if len(c.keys) == 0 {
		return
	}
	k := c.keys[c.random.IntN(len(c.keys))]
	if k.shared {
		c.share(k)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	mode := c.mode.Load()
	shard := c.choose(k.name)
	if err := c.on(k, shard, k.moves && (mode == bothLists || mode == newList)); err != nil {
		k.closed = true
	}
}

// share changes a key while other clients change it too.
func (c *scaledClient) share(k *scaledKey) {
	c.serial++
	write := scaledWrite{fmt.Sprintf("%d-%d", c.id, c.serial), time.Now(), time.Time{}}
	request := fmt.Sprintf("ms %s %d\r\n%s\r\n", k.name, len(write.value), write.value)
	if c.random.IntN(3) == 0 {
		write.value, request = "", fmt.Sprintf("md %s\r\n", k.name)
	}
	_, _, err := c.do(c.choose(k.name), request)
	write.end = time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writes, k.closed = append(k.writes, write), k.closed || err != nil
}

// sawShared reports a value that was replaced before the last write began.
func (c *scaled) sawShared(k *scaledKey, value, when string) {
	at := slices.IndexFunc(k.writes, func(w scaledWrite) bool { return w.value == value })
	if value == "" || k.closed || at < 0 && len(k.writes) == 0 {
		return
	}
	var end time.Time // of a value from before
	if at >= 0 {
		end = k.writes[at].end
	}
	for _, later := range k.writes {
		if later.began.After(end) {
			c.totals.add(func() { c.totals.lasting[when]++ })
			c.notes.add("%s: %q of %s was replaced by %q", when, value, k.name, later.value)
			return
		}
	}
}

// saw compares what was read with the newest value.
func (c *scaledClient) saw(k *scaledKey, value string, counts bool, is string) {
	if k.closed {
		return
	}
	c.totals.add(func() {
		if counts {
			c.totals.reads++
		}
		switch at, old := k.replaced[value]; {
		case value == "" || value == k.newest:
			if counts && value == "" && k.newest != "" {
				c.totals.misses++
			}
		case !counts:
			c.totals.lasting[is]++
			c.notes.add("%s: read %.20q of %s, want %.20q, replaced %.2f s ago (%t)", is, value, k.name, k.newest, time.Since(at).Seconds(), old)
		default:
			c.totals.stale++
			if old {
				c.totals.oldest = max(c.totals.oldest, time.Since(at))
				if k.deleted.Before(at) {
					c.totals.undeleted = max(c.totals.undeleted, time.Since(at))
				}
			} else if !k.counter {
				c.t.Errorf("wrong value %q of %s, want %q", value, k.name, k.newest)
			}
		}
	})
}

func (c *scaledClient) on(k *scaledKey, shard int, counts bool) error {
	n := c.random.IntN(100)
	if k.counter && n >= 60 && n < 80 {
		line, value, err := c.do(shard, fmt.Sprintf("ma %s v\r\n", k.name))
		if err != nil || !strings.HasPrefix(line, "VA") {
			return err
		}
		if base, _ := strconv.Atoi(value); strconv.Itoa(base-1) != k.newest && !k.closed {
			c.totals.add(func() { c.totals.counters++ })
			if !counts {
				c.saw(k, strconv.Itoa(base-1), false, "incr")
			}
		}
		k.now(value)
		return nil
	}
	switch {
	case n < 60:
		_, value, err := c.do(shard, fmt.Sprintf("mg %s v\r\n", k.name))
		if err == nil {
			c.saw(k, value, counts, "read")
		}
		return err
	case n < 82:
		c.serial++
		value := fmt.Sprintf("%d-%d%s", c.id, c.serial, strings.Repeat("x", c.random.IntN(400)))
		if k.counter {
			value = strconv.Itoa(1_000_000*(c.id+1) + 1000*c.serial)
		}
		ttl, text := c.random.IntN(3)*1000, ""
		if ttl > 0 {
			text = fmt.Sprintf(" T%d", ttl)
		}
		line, _, err := c.do(shard, fmt.Sprintf("ms %s %d%s\r\n%s\r\n", k.name, len(value), text, value))
		if err == nil && line == "HD" {
			k.now(value)
			if k.expires = (time.Time{}); ttl > 0 {
				k.expires = time.Now().Add(time.Duration(ttl) * time.Second)
			}
		}
		return err
	case n < 90:
		_, _, err := c.do(shard, fmt.Sprintf("md %s\r\n", k.name))
		if err == nil {
			k.now("")
			k.deleted = time.Now()
		}
		return err
	case n < 95:
		ttl := 500 + c.random.IntN(3)*1000
		line, value, err := c.do(shard, fmt.Sprintf("mg %s v T%d\r\n", k.name, ttl))
		if err == nil && line != "EN" {
			c.saw(k, value, counts, "read")
			k.expires = time.Now().Add(time.Duration(ttl) * time.Second)
		}
		return err
	}
	line, value, err := c.do(shard, fmt.Sprintf("mg %s v c\r\n", k.name))
	if err != nil || line == "EN" {
		return err
	}
	c.saw(k, value, counts, "read")
	cas := line[strings.LastIndex(line, " c")+2:]
	c.serial++
	next := fmt.Sprintf("cas-%d-%d", c.id, c.serial)
	if k.counter {
		next = strconv.Itoa(2_000_000_000 + 1_000_000*c.id + 1000*c.serial)
	}
	line, _, err = c.do(shard, fmt.Sprintf("ms %s %d C%s T0\r\n%s\r\n", k.name, len(next), cas, next))
	if err == nil && line == "HD" {
		k.now(next)
		k.expires = time.Time{}
	}
	return err
}

// run lets clients work until stop is called.
func (c *scaled) run(clients int) (stop func(), all []*scaledClient) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range clients {
		w := &scaledClient{scaled: c, random: mathrand.New(mathrand.NewPCG(c.random.Uint64(), uint64(i))), conns: map[int]*bothConn{}, id: i, after: c.random.Float64()}
		w.serial = int(time.Now().UnixNano() / 1e6 % 1e6 * 1000)
		all = append(all, w)
		running.Go(func() {
			for ctx.Err() == nil {
				w.step()
				time.Sleep(time.Duration(w.random.Int64N(int64(scalingPause)))) //nolint:forbidigo // the pace of a client
			}
			for _, conn := range w.conns {
				_ = conn.conn.Close()
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}, all
}

// scaledTarget is a shard that gets keys.
type scaledTarget struct {
	progress atomic.Pointer[scaling.Progress]
	over     chan error
}

// target returns a target whose connections can be cut.
func (c *scaled) target(shard *scaledShard, name string, to int, step func() scaling.Step) scaling.Target {
	return scaling.Target{
		Memcached: shard.memcached(), Key: handoverKey, Log: slog.New(slog.NewTextHandler(shard.Log, nil)), Step: step,
		Change: scaling.Change{Ring: name, From: c.before.servers, To: c.list(to).servers},
		Dial: func(ctx context.Context, ordinal int) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.shards[ordinal].address)
			if err == nil {
				shard.cuts.mu.Lock()
				shard.cuts.conns = append(shard.cuts.conns, conn)
				shard.cuts.mu.Unlock()
			}
			return conn, err
		},
	}
}

// fault is what happens in a step.
type scaledFault struct {
	kind string
	step scaling.Step
}

// change changes the number of shards from one to another one, and returns when clients use the new list only.
func (c *scaled) change(to int, warm bool, fault scaledFault) {
	c.t.Helper()
	from := len(c.before.servers)
	c.after = c.list(to)
	for len(c.shards) < to {
		c.start(len(c.shards))
	}
	for _, k := range c.keys {
		k.moves = c.before.ring.Shard([]byte(k.name)) != c.after.ring.Shard([]byte(k.name))
	}
	c.mode.Store(oldList)
	stop, clients := c.run(12)
	c.sleep(100)
	var step atomic.Value
	step.Store(scaling.Copy)
	var targets []*scaledTarget
	if warm {
		for ordinal := range to {
			if from < to && ordinal < from {
				continue
			}
			target := &scaledTarget{over: make(chan error, 1)}
			target.progress.Store(&scaling.Progress{})
			targets = append(targets, target)
			shard := c.shards[ordinal]
			go func() {
				t := c.target(shard, c.name, to, func() scaling.Step { return step.Load().(scaling.Step) })
				t.Progress = func(p scaling.Progress) { target.progress.Store(&p) }
				target.over <- scaling.Run(c.t.Context(), t)
			}()
		}
	}
	await := func(want scaling.Step) {
		c.fault(fault, want, from, to)
		for _, target := range targets {
			if !pods.Eventually(func() bool { return target.progress.Load().Step == want || len(target.over) > 0 }) {
				c.t.Fatalf("no target is at %s: %+v", want, *target.progress.Load())
			}
		}
	}
	await(scaling.Copy)
	step.Store(scaling.Published)
	await(scaling.Published)
	c.mode.Store(bothLists)
	for part := range 100 {
		for _, w := range clients {
			w.switched.Store(float64(part) > 100*w.after)
		}
		c.sleep(int(scalingMixed.Milliseconds() / 100))
	}
	c.mode.Store(newList)
	// Operations with the old list are over when each key was free once.
	for _, k := range c.keys {
		k.mu.Lock()
		k.mu.Unlock() //nolint:staticcheck // it waits
	}
	if warm {
		step.Store(scaling.Close)
		await(scaling.Close)
		for _, target := range targets {
			pods.Must(c.t, <-target.over)
		}
		c.mode.Store(closed)
		c.sleep(200)
	}
	stop()
	c.check(fmt.Sprintf("%d to %d", from, to), warm)
	c.before = c.after
}

func (c *scaled) fault(fault scaledFault, now scaling.Step, from, to int) {
	if fault.step != now {
		return
	}
	c.sleep(c.random.IntN(300))
	source, target := c.shards[c.random.IntN(min(from, to))], c.shards[max(from, to)-1]
	if from > to {
		source, target = target, source
	}
	switch fault.kind {
	case "source":
		source.crash()
	case "target":
		target.crash()
	case "cut":
		target.cuts.cut()
	}
}

// check reads each key by the new list.
func (c *scaled) check(when string, warm bool) {
	client := &scaledClient{scaled: c, conns: map[int]*bothConn{}}
	for _, k := range c.keys {
		shard := c.after.ring.Shard([]byte(k.name))
		line, value, err := client.do(shard, fmt.Sprintf("mg %s v t\r\n", k.name))
		pods.Must(c.t, err)
		if k.shared {
			c.sawShared(k, value, when)
			k.newest, k.writes = value, nil
		}
		client.saw(k, value, false, when)
		if value != "" && value == k.newest && !k.closed {
			ttl, _ := strconv.Atoi(line[strings.LastIndex(line, " t")+2:])
			if off := time.Until(k.expires) - time.Duration(ttl)*time.Second; k.expires.IsZero() != (ttl == -1) || !k.expires.IsZero() && off.Abs() > 4*time.Second {
				c.totals.add(func() { c.totals.expiry++ })
			}
		}
		// What is left on shards that stay is where no client looks for it.
		if former := c.before.ring.Shard([]byte(k.name)); warm && former != shard && former < len(c.after.servers) {
			if _, value, err := client.do(former, fmt.Sprintf("mg %s v\r\n", k.name)); err != nil || value != "" {
				c.totals.add(func() { c.totals.left++ })
			}
		}
		k.closed = false
		if value == "" {
			k.now("")
		} else if value != k.newest {
			k.now(value)
		}
	}
	for _, conn := range client.conns {
		_ = conn.conn.Close()
	}
}

func (c *scaled) sleep(milliseconds int) {
	time.Sleep(time.Duration(milliseconds) * time.Millisecond) //nolint:forbidigo // the time in which clients work
}

// After a change of the number of shards, no client reads an old value, and the old owners of moved keys have none of them. Without
// the moves of keys, the same clients do. "-runs 200" repeats it.
func TestScalingLeavesNoStaleValue(t *testing.T) {
	rings := []string{ring.Rendezvous, ring.Ketama, ring.Jump, ring.Modulo}
	faults := []scaledFault{{}, {"source", scaling.Published}, {"target", scaling.Published}, {"cut", scaling.Published}, {"source", scaling.Copy},
		{"target", scaling.Copy}, {"cut", scaling.Copy}, {}, {"source", scaling.Close}, {"target", scaling.Close}, {"cut", scaling.Close}, {}}
	for n := range cmp.Or(*runsFlag, len(rings)) {
		name, version, fault := rings[n%len(rings)], pods.Versions[n%len(pods.Versions)], faults[(n+n/len(faults))%len(faults)]
		for _, warm := range []bool{true, false} {
			if !warm && n%4 > 0 {
				continue
			}
			t.Run(fmt.Sprintf("%d %s %s %s at %s warm=%t", n, name, version, fault.kind, fault.step, warm), func(t *testing.T) {
				t.Parallel()
				few, many := 3, 4
				if name == ring.Modulo {
					few = 2
				}
				c := newScaled(t, n, name, version)
				c.fill(few)
				c.change(many, warm, fault)
				c.change(few, warm, fault)
				if found := len(c.notes.list) > 0; found == warm {
					t.Errorf("old values: %s", strings.Join(c.notes.list, "\n"))
				}
				t.Log(&c.totals)
				if warm && c.totals.left > 0 {
					t.Errorf("the old owners have %d moved keys", c.totals.left)
				}
			})
		}
	}
}

// What moves are items with flags, expiry and kind of key. What only a reader may store, or what is stale, does not move.
func TestMovedItemsAreThoseOfTheOldOwner(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		c := newScaled(t, 0, ring.Ketama, version)
		c.keys = nil
		c.fill(3)
		after := c.list(4)
		key := func(prefix string) string {
			for i := 0; ; i++ {
				if name := fmt.Sprintf("%s-%d", prefix, i); after.ring.Shard([]byte(name)) == 3 {
					return name
				}
			}
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(key("with a space")))
		large := strings.Repeat("x", 700_000)
		requests := []string{
			fmt.Sprintf("ms %s 2 F7 T5000\r\nab\r\n", key("flags")), fmt.Sprintf("ms %s 2 b\r\nab\r\n", encoded),
			fmt.Sprintf("ms %s %d\r\n%s\r\n", key("large"), len(large), large), fmt.Sprintf("ms %s 0\r\n\r\n", key("empty")),
			fmt.Sprintf("mg %s N300 v\r\n", key("placeholder")), fmt.Sprintf("ms %s 2\r\nab\r\n", key("stale")), fmt.Sprintf("md %s I\r\n", key("stale")),
		}
		for _, request := range requests {
			name := strings.Fields(request)[1]
			if name == encoded {
				name = key("with a space")
			}
			c.shards[c.before.ring.Shard([]byte(name))].Talk(request)
		}
		c.change(4, true, scaledFault{})
		answers := c.shards[3].Talk(fmt.Sprintf("mg %s v f t\r\nmg %s v k b\r\nmg %s s\r\nmg %s v\r\nmg %s v\r\nmg %s v\r\n",
			key("flags"), encoded, key("large"), key("empty"), key("placeholder"), key("stale")))
		want := fmt.Sprintf("VA 2 f7 tTTL\r\nab\r\nVA 2 k%s b\r\nab\r\nHD s700000\r\nVA 0\r\n\r\nEN\r\nEN\r\n", encoded)
		if got := regexp.MustCompile(`t49\d\d`).ReplaceAllString(answers, "tTTL"); got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}

// Where the clients use another ring than the declared one, nothing is copied, and nothing deleted.
func TestKeysStayWhereTheRingIsUnproven(t *testing.T) {
	t.Parallel()
	c := newScaled(t, 0, ring.Rendezvous, pods.Newest)
	c.fill(3)
	c.start(3)
	var before []int64
	for _, shard := range c.shards {
		before = append(before, shard.Items())
	}
	for name, run := range map[string]struct {
		ring    string
		reserve bool
		want    error
	}{"another ring": {ring.Jump, true, scaling.ErrUnproven}, "no memory": {ring.Rendezvous, false, scaling.ErrNoMemory}} {
		target := c.target(c.shards[3], run.ring, 4, func() scaling.Step { return scaling.Copy })
		target.Reserve = func(int64) (func(), bool) { return func() {}, run.reserve }
		if err := scaling.Run(t.Context(), target); !errors.Is(err, run.want) {
			t.Errorf("%s: %v, want %v", name, err, run.want)
		}
	}
	for ordinal, shard := range c.shards {
		if n := shard.Items(); n != before[ordinal] {
			t.Errorf("shard %d has %d items, want %d", ordinal, n, before[ordinal])
		}
	}
}

// What changes after a sweep has shown the source's items doesn't get lost, and what an unfinished sweep has seen doesn't count in the next one.
func TestChangesDuringASweepAreFollowed(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]struct {
		at scaling.Step
		// target and source are requests for a key, in this order, before the target's scan. never is a value that is not the newest one.
		target, source, never string
		fails                 error
	}{
		"deletion, and the scan fails": {scaling.Close, "mg %s v", "md %s", "7000", errors.New("a scan that fails")},
		"changes on both sides":        {scaling.Published, "ms %s 3\r\nold", "ms %s 3\r\nnew", "old", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newScaled(t, 0, ring.Rendezvous, pods.Newest)
			c.fill(3)
			c.start(3)
			after := c.list(4)
			i := slices.IndexFunc(c.keys, func(k *scaledKey) bool { return after.ring.Shard([]byte(k.name)) == 3 })
			key, step, changed := c.keys[i].name, scaling.Copy, false
			target := c.target(c.shards[3], c.name, 4, func() scaling.Step { return step })
			target.Progress = func(p scaling.Progress) {
				switch {
				case p.Step == scaling.Copy && step == scaling.Copy:
					step = run.at
				case p.Step == scaling.Published && changed:
					step = scaling.Close
				}
			}
			scan := target.Scan
			target.Scan = func(ctx context.Context, order handover.Order, which func([]byte) bool, visit func(*memfile.Item) error) (memfile.Report, error) {
				if step == run.at && !changed {
					changed = true
					if answer := c.shards[3].Talk(fmt.Sprintf(run.target+"\r\n", key)); answer == "EN\r\n" {
						t.Error("the key was not copied")
					}
					c.shards[c.before.ring.Shard([]byte(key))].Talk(fmt.Sprintf(run.source+"\r\n", key))
					if run.fails != nil {
						return memfile.Report{}, run.fails
					}
				}
				return scan(ctx, order, which, visit)
			}
			pods.Must(t, scaling.Run(t.Context(), target))
			if answer := c.shards[3].Talk("mg " + key + " v\r\n"); strings.Contains(answer, run.never) || !changed {
				t.Errorf("an old value is left: %q", answer)
			}
		})
	}
}

// fill starts shards, and stores each key.
func (c *scaled) fill(shards int) {
	c.t.Helper()
	c.before = c.list(shards)
	for ordinal := range shards {
		c.start(ordinal)
	}
	client := &scaledClient{scaled: c, conns: map[int]*bothConn{}}
	for i, k := range c.keys {
		k.newest = strconv.Itoa(7_000_000 + i)
		if _, _, err := client.do(c.before.ring.Shard([]byte(k.name)), fmt.Sprintf("ms %s %d\r\n%s\r\n", k.name, len(k.newest), k.newest)); err != nil {
			c.t.Fatal(err)
		}
	}
}
