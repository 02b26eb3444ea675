package checker

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// bothServe checks what clients see while two pods serve. Each worker alone changes its keys, over a connection that stays with
// the old pod while that exists, and over new ones. So it knows the newest value of each. A key may be lost at any time.
type bothServe struct {
	address func() string
	// over is set when the handover is finished: from then on no read may return an older value.
	over     atomic.Bool
	answered atomic.Int64 // operations
	stop     chan struct{}
	running  sync.WaitGroup
	workers  []*bothWorker
	notes    notes
}

// bothTotals are the figures of a worker, a run or all runs.
type bothTotals struct {
	reads, writes, misses, unanswered, dials int
	failedDials, failed                      int
	stale, lasting, wrong                    int
	// oldest is how long ago the oldest value that was read had been replaced.
	oldest time.Duration
}

func (b *bothTotals) add(o bothTotals) {
	b.reads += o.reads
	b.writes += o.writes
	b.misses += o.misses
	b.unanswered += o.unanswered
	b.dials += o.dials
	b.failedDials += o.failedDials
	b.failed += o.failed
	b.stale += o.stale
	b.lasting += o.lasting
	b.wrong += o.wrong
	b.oldest = max(b.oldest, o.oldest)
}

func (b bothTotals) String() string {
	return fmt.Sprintf("%d reads, %d of them misses, %d writes; %d older values while both served, at most %.2f s old; %d older and %d wrong values later; "+
		"%d of %d new connections failed; %d operations of open connections failed, %d of them writes",
		b.reads, b.misses, b.writes, b.stale, b.oldest.Seconds(), b.lasting, b.wrong, b.failedDials, b.dials, b.failed, b.unanswered)
}

// knownKey is a key as far as the clients that change it know. A value that was replaced is in replaced.
type knownKey struct {
	name   string
	newest string // empty: deleted
	// closed is set after a change without an answer: it may have happened.
	closed bool
	// invalid is whether newest was invalidated: reads may return it if they show that.
	invalid  bool
	replaced map[string]time.Time
}

// notes are the first of what is wrong.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) < 20 {
		n.list = append(n.list, fmt.Sprintf("%.300s", fmt.Sprintf(format, args...)))
	}
}

type bothWorker struct {
	check  *bothServe
	name   string
	random *mathrand.Rand
	keys   []*knownKey
	old    *bothConn
	serial int
	totals bothTotals
}

// bothConn is a connection that answers one request at a time.
type bothConn struct {
	conn net.Conn
	r    *bufio.Reader
}

func dialBoth(address string) (*bothConn, error) {
	if address == "" {
		return nil, errors.New("no pod is ready")
	}
	conn, err := net.DialTimeout("tcp", address, pods.Patience)
	if err != nil {
		return nil, err
	}
	return &bothConn{conn, bufio.NewReader(conn)}, nil
}

func (c *bothConn) do(request string) (line, value string, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(pods.Patience)); err != nil {
		return "", "", err
	}
	if _, err := io.WriteString(c.conn, request); err != nil {
		return "", "", err
	}
	if line, err = c.r.ReadString('\n'); err != nil {
		return "", "", err
	}
	line = strings.TrimSpace(line)
	if words := strings.Fields(line); words[0] == "VA" || words[0] == "VALUE" {
		size := words[1]
		if words[0] == "VALUE" {
			size = words[3]
		}
		n, err := strconv.Atoi(size)
		if err != nil {
			return "", "", err
		}
		data := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, data); err != nil {
			return "", "", err
		}
		value = string(data[:n])
		if words[0] == "VALUE" {
			if _, err := c.r.ReadString('\n'); err != nil {
				return "", "", err
			}
		}
	}
	return line, value, nil
}

func startBoth(seed uint64, address func() string) *bothServe {
	c := &bothServe{address: address, stop: make(chan struct{})}
	for i := range 4 {
		w := &bothWorker{check: c, name: fmt.Sprintf("both-%d", i), random: mathrand.New(mathrand.NewPCG(seed, uint64(i)))}
		for n := range 100 {
			w.keys = append(w.keys, &knownKey{name: fmt.Sprintf("%s-%d", w.name, n), replaced: map[string]time.Time{}})
		}
		c.workers = append(c.workers, w)
		c.running.Go(func() {
			for {
				select {
				case <-c.stop:
					return
				default:
				}
				w.step(w.keys[w.random.IntN(len(w.keys))])
				time.Sleep(500 * time.Microsecond) //nolint:forbidigo // the pace of a client
			}
		})
	}
	return c
}

// await waits until the clients have used most of their keys once more.
func (c *bothServe) await(t *testing.T) {
	t.Helper()
	if want := c.answered.Load() + 600; !pods.Eventually(func() bool { return c.answered.Load() >= want }) {
		t.Error("the clients have no answers")
	}
}

// end stops the workers, and reads each key once more.
func (c *bothServe) end() (totals bothTotals) {
	close(c.stop)
	c.running.Wait()
	for _, w := range c.workers {
		for _, k := range w.keys {
			w.on(k, func(conn *bothConn) error { return w.read(k, conn) })
		}
		if w.old != nil {
			_ = w.old.conn.Close()
		}
		totals.add(w.totals)
	}
	return totals
}

// on runs an operation over a connection of either kind, and returns its error.
func (w *bothWorker) on(k *knownKey, do func(*bothConn) error) {
	stays := w.random.IntN(2) == 0
	conn := w.old
	if !stays || conn == nil {
		var err error
		w.totals.dials++
		if conn, err = dialBoth(w.check.address()); err != nil {
			w.totals.failedDials++
			return
		}
		if stays {
			w.old = conn
		} else {
			defer conn.conn.Close()
		}
	}
	if err := do(conn); err != nil {
		w.totals.failed++
		_ = conn.conn.Close()
		if conn == w.old {
			w.old = nil
		}
		return
	}
	w.check.answered.Add(1)
}

func (w *bothWorker) step(k *knownKey) {
	w.on(k, func(conn *bothConn) error {
		if k.closed || w.random.IntN(2) == 0 {
			return w.read(k, conn)
		}
		w.serial++
		return w.write(k, conn, fmt.Sprintf("%d%05d", w.serial, w.random.IntN(100_000)))
	})
}

// write changes a key with any command. next is a value that the key never had.
func (w *bothWorker) write(k *knownKey, conn *bothConn, next string) error {
	store := func(command string) string {
		return fmt.Sprintf("%s %s 0 0 %d\r\n%s\r\n", command, k.name, len(next), next)
	}
	request := map[int]string{
		0: store("set"), 1: store("add"), 2: store("replace"), 3: store("append"), 4: store("prepend"),
		5: "incr " + k.name + " 100003\r\n", 6: "decr " + k.name + " 1\r\n", 7: "delete " + k.name + "\r\n", 8: "md " + k.name + " I\r\n",
		9: fmt.Sprintf("ms %s %d\r\n%s\r\n", k.name, len(next), next), 10: "touch " + k.name + " 1000\r\n", 11: "gat 2000 " + k.name + "\r\n",
		12: "md " + k.name + "\r\n", 13: "ma " + k.name + " N0 J1\r\n", 14: "cas", 15: store("set"),
		16: "equal", // a write of the value that it has
	}[w.random.IntN(17)]
	switch request {
	case "cas":
		line, _, err := conn.do("gets " + k.name + "\r\n")
		words := strings.Fields(line)
		if err != nil || len(words) < 5 {
			return err
		}
		request = fmt.Sprintf("cas %s 0 0 %d %s\r\n%s\r\n", k.name, len(next), words[4], next)
	case "equal":
		next = cmp.Or(k.newest, next)
		request = store("set")
	}
	w.totals.writes++
	began := time.Now()
	line, value, err := conn.do(request)
	if err != nil {
		k.closed = true
		w.totals.unanswered++
		return err
	}
	switch line {
	case "NOT_STORED", "NOT_FOUND", "EXISTS", "NF", "NS", "END", "TOUCHED":
		return nil
	}
	switch command, _, _ := strings.Cut(request, " "); {
	case strings.HasPrefix(line, "CLIENT_ERROR"): // no number
	case strings.HasSuffix(request, " I\r\n"):
		k.invalid = true
	case line == "DELETED", command == "md":
		k.now("")
	case command == "gat":
		w.evaluate(k, value, false, began)
	case command == "append", command == "prepend", command == "decr", command == "incr", command == "ma":
		// The result depends on what this server had, and is in it.
		if _, value, err = conn.do("mg " + k.name + " v\r\n"); err != nil {
			k.closed = true
			return err
		}
		k.now(value)
	case line == "STORED", line == "HD":
		k.now(next)
	default:
		w.check.notes.add("%q: %q", request, line)
	}
	return nil
}

// now is called when a change was acknowledged.
func (k *knownKey) now(value string) {
	k.invalid = false
	if value == k.newest {
		return
	}
	if k.newest != "" {
		k.replaced[k.newest] = time.Now()
	}
	delete(k.replaced, value)
	k.newest = value
}

func (w *bothWorker) read(k *knownKey, conn *bothConn) error {
	over, began := w.check.over.Load(), time.Now() // before the request
	command := "get " + k.name + "\r\n"
	if w.random.IntN(2) == 0 {
		command = "mg " + k.name + " v\r\n"
	}
	line, value, err := conn.do(command)
	if err != nil {
		return err
	}
	w.totals.reads++
	if strings.Contains(line, " X") { // not a value to be used
		value = ""
	}
	if k.invalid && value != "" && value == k.newest && strings.HasPrefix(command, "mg") {
		w.totals.stale++
		if over {
			w.totals.lasting++
			w.check.notes.add("%s is %q, which was invalidated: %s", k.name, value, line)
		}
		return nil
	}
	w.evaluate(k, value, over, began)
	return nil
}

// evaluate compares the value of a read that began at a time.
func (w *bothWorker) evaluate(k *knownKey, value string, over bool, began time.Time) {
	switch value {
	case "":
		w.totals.misses++
		return
	case k.newest:
		return
	}
	if k.closed {
		return
	}
	at, known := k.replaced[strings.TrimRight(value, " ")]
	if !known {
		at, known = k.replaced[value]
	}
	switch {
	case !known:
		w.totals.wrong++
		w.check.notes.add("%s is %q, and should be %q", k.name, value, k.newest)
	case over:
		w.totals.lasting++
		w.check.notes.add("%s is %q, and should be %q for %s", k.name, value, k.newest, time.Since(at))
	default:
		w.totals.stale++
		w.totals.oldest = max(w.totals.oldest, began.Sub(at))
	}
}

// bothPair is a handover in mode Available.
type bothPair struct {
	*checkedPair
	check *bothServe
}

func newBothPair(t *testing.T, seed uint64, from, to string) *bothPair {
	t.Helper()
	p := &bothPair{checkedPair: newCheckedPair(t, seed, from, to)}
	p.next.HandoverMode = agentwire.ModeAvailable
	return p
}

// start starts the old pod, with items, and the clients. Both pods will serve until served is called.
func (p *bothPair) start(seed uint64) {
	p.t.Helper()
	p.fill()
	p.router.Hold.Store(true)
	p.check = startBoth(seed, p.router.Address)
	p.sleep(1200, 1500) // flush_all keeps what is younger
	p.check.await(p.t)
}

// follows waits until the new pod serves too, and returns whether it does: on a busy machine, a handover may fail by itself.
func (p *bothPair) follows() bool {
	p.t.Helper()
	return p.next.WaitFor("the new pod to serve", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseFollowing || status.Phase == agentwire.PhaseServing
	}).Phase == agentwire.PhaseFollowing
}

// served waits until the new pod alone serves, and returns its start.
func (p *bothPair) served() agentwire.Start {
	p.t.Helper()
	p.router.Hold.Store(false)
	start := p.next.WaitForPhase(agentwire.PhaseServing).Start
	p.check.over.Store(true)
	p.old.Exit()
	return start
}

// finish stops the clients and checks the result.
func (p *bothPair) finish(start agentwire.Start) bothTotals {
	p.t.Helper()
	p.check.await(p.t)
	totals, wrong := p.check.end(), p.check.notes.list
	p.t.Logf("%s: %s; %s", start.Result, start.Reason, totals)
	if totals.lasting+totals.wrong+len(wrong) > 0 {
		p.t.Errorf("start %+v: %s\n%s", start, totals, strings.Join(wrong, "\n"))
	}
	return totals
}

// attempts bounds how often a test repeats a handover that fails by itself, as it may on a busy machine.
const attempts = 3

// untilHandedOver repeats a run until its handover succeeds.
func untilHandedOver[P, T any](t *testing.T, run func() (P, agentwire.Start, T)) (pair P, start agentwire.Start, totals T) {
	t.Helper()
	for range attempts {
		if pair, start, totals = run(); start.Result == agentwire.StartHandedOver {
			break
		}
		t.Logf("the handover failed by itself: %s", start.Reason)
	}
	return pair, start, totals
}

// Both pods serve for a few seconds while clients use all commands in both. "-runs 200" repeats it.
func TestAvailableHandoverReturnsNoOldValueAfterItsEnd(t *testing.T) {
	for n := range runs() {
		from, to, surge := pods.Versions[n%3], pods.Versions[n/3%3], n%2 == 1
		flushed := map[int]string{3: "old", 5: "next"}[n%7]
		t.Run(fmt.Sprintf("%d from %s to %s surge=%t flush=%s", n, from, to, surge, flushed), func(t *testing.T) {
			t.Parallel()
			p, start, totals := untilHandedOver(t, func() (*bothPair, agentwire.Start, bothTotals) {
				p := newBothPair(t, uint64(n), from, to)
				p.start(uint64(n))
				p.trigger(surge)
				if p.follows() {
					if pods.Greet(p.old.Address()) != nil {
						t.Error("the old pod does not serve while the new one follows it")
					}
					if s := map[string]*pods.Shard{"old": p.old, "next": p.next}[flushed]; s != nil {
						p.sleep(0, 3000)
						if answer := pods.Talk(t, s.Address(), "flush_all\r\n"); answer != "OK\r\n" {
							t.Errorf("flush_all: %q", answer)
						}
					}
				}
				start := p.served()
				return p, start, p.finish(start)
			})
			if code := p.old.Exit(); code != 0 {
				t.Errorf("the old agent exited with code %d", code)
			}
			if start.Result != agentwire.StartHandedOver || start.Mode != agentwire.ModeAvailable || start.GapSeconds != 0 || start.StaleSeconds < 5 {
				t.Errorf("start %+v", start)
			}
			if bound := start.StaleSeconds + 2; totals.oldest.Seconds() > bound {
				t.Errorf("a value was %s old, want at most %.1f s", totals.oldest, bound)
			}
			if totals.failedDials > 0 || totals.failed > len(p.check.workers) {
				t.Errorf("%d new connections failed, and %d operations of %d open ones", totals.failedDials, totals.failed, len(p.check.workers))
			}
			has := p.kept()
			if flushed == "" && has < otherItems*995/1000 || flushed != "" && has > 0 {
				t.Errorf("%d of %d other items are there", has, otherItems)
			}
		})
	}
}

// What one of the two loses while both serve costs all items: each could have what the other does not know.
func TestAvailableHandoverThatIsInterruptedLeavesNoOldValue(t *testing.T) {
	faults := []struct {
		name string
		do   func(*testing.T, *bothPair)
	}{
		{"the old pod is killed", func(t *testing.T, p *bothPair) { p.old.Kill() }},
		{"the old memcached dies", func(t *testing.T, p *bothPair) { _ = syscall.Kill(p.old.Status().PID, syscall.SIGKILL) }},
		{"the container of the new pod is killed", func(t *testing.T, p *bothPair) {
			p.next.Kill()
			p.next.Launch()
		}},
		{"the container of the new pod is stopped", func(t *testing.T, p *bothPair) {
			p.next.Signal(syscall.SIGTERM)
			p.next.Exit()
			p.next.Launch()
		}},
		{"the new memcached dies", func(t *testing.T, p *bothPair) { _ = syscall.Kill(p.next.Status().PID, syscall.SIGKILL) }},
		{"the connection is cut", func(t *testing.T, p *bothPair) { p.wire.cut() }},
		{"the old pod is stopped", func(t *testing.T, p *bothPair) { p.old.Signal(syscall.SIGTERM) }},
	}
	for n := range runs() {
		fault := faults[n%len(faults)]
		from, to, surge := pods.Versions[n%3], pods.Versions[n/3%3], n%2 == 1
		t.Run(fmt.Sprintf("%d %s from %s to %s", n, fault.name, from, to), func(t *testing.T) {
			t.Parallel()
			for attempt := range attempts {
				p := newBothPair(t, uint64(n), from, to)
				p.relay(1000 + n)
				p.start(uint64(n))
				p.trigger(surge)
				interrupted := p.follows()
				if interrupted {
					p.sleep(0, 4000)
					fault.do(t, p)
				}
				start := p.served()
				p.finish(start)
				if !interrupted && attempt < attempts-1 {
					continue // it failed by itself before
				}
				if start.Result != agentwire.StartCold || !strings.Contains(start.Reason, "both pods") {
					t.Errorf("start %+v, want Cold", start)
				}
				if kept := p.kept(); kept > 0 {
					t.Errorf("%d of the other items are there", kept)
				}
				return
			}
		})
	}
}
