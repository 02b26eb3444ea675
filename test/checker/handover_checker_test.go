package checker

import (
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/checker"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

var runsFlag = flag.Int("runs", 0, "checked handovers of a kind, or scalings; 0 is 6 handovers, and 18 if TEST_EXHAUSTIVE is set: one for each pair of versions and each trigger; and a scaling for each ring")

// runs returns the number of checked handovers.
func runs() int {
	switch {
	case *runsFlag != 0:
		return *runsFlag
	case pods.Exhaustive():
		return 18
	}
	return 6
}

const (
	otherItems = 20_000
	// firstToken is above every number that an old pod's memcached uses.
	firstToken = 1 << 40
)

// checkedPair is a handover between two pods while clients use all commands.
type checkedPair struct {
	t         *testing.T
	random    *mathrand.Rand
	old, next *pods.Shard
	router    *pods.Router
	check     *checker.Checker
	wire      *wire
}

// newCheckedPair starts the old pod with items, and the clients.
func newCheckedPair(t *testing.T, seed uint64, from, to string) *checkedPair {
	t.Helper()
	p := &checkedPair{t: t, random: mathrand.New(mathrand.NewPCG(seed, 1))}
	p.old, p.next, p.router = pods.NewPair(t, "-m", "128", "-I", "8m")
	p.old.Memcached, p.next.Memcached = pods.MemcachedPath(from), pods.MemcachedPath(to)
	return p
}

// fill starts the old pod with items.
func (p *checkedPair) fill() {
	p.t.Helper()
	p.old.Run()
	others := items.New("other", otherItems, p.old.Address())
	defer others.Close()
	pods.Must(p.t, others.Fill())
	p.router.WaitFor(p.old)
}

// begin starts the old pod, with items, and the clients.
func (p *checkedPair) begin(seed uint64) {
	p.t.Helper()
	p.fill()
	p.check = checker.Start(checker.Options{
		Seed: seed, Workers: 4, Keys: 200, Pause: 300 * time.Microsecond, LargeBytes: 3 << 20,
	}, p.router.Address)
	p.t.Cleanup(func() { p.check.Stop() })
	p.sleep(400, 800)
	awaitOperations(p.t, p.check, 300, 100, 0)
}

// sleep waits for a random time of so many milliseconds.
func (p *checkedPair) sleep(from, to int) {
	time.Sleep(time.Duration(from+p.random.IntN(to-from)) * time.Millisecond) //nolint:forbidigo // what comes next comes at any time of a handover
}

// trigger deletes the old pod, either before its replacement is created, as a drain does, or after it, as the operator does.
func (p *checkedPair) trigger(surge bool) {
	p.t.Helper()
	if !surge {
		p.old.Signal(syscall.SIGTERM)
		p.next.Launch()
		return
	}
	p.next.Launch()
	p.next.WaitFor("the new pod to find the old one", func(s agentwire.Status) bool { return s.Phase == agentwire.PhaseReceiving })
	p.sleep(0, 300)
	if pods.IsReady(p.t.Context(), p.next) {
		p.t.Error("the new pod is ready before the handover")
	}
	p.old.Signal(syscall.SIGTERM)
}

// moved waits until the new pod is ready, and returns the last status of its start.
func (p *checkedPair) moved() agentwire.Start {
	p.t.Helper()
	pods.WaitReady(p.t, p.next)
	start := p.next.Status().Start
	pods.Eventually(func() bool {
		exited := p.old.HasExited()
		if !exited && start.Result == agentwire.StartHandedOver && pods.Greet(p.old.Address()) == nil {
			p.t.Error("the old memcached answers while the new pod is ready")
			return true
		}
		return exited
	})
	p.old.Exit()
	return start
}

// end stops the clients and checks the result. Only a handover must keep the items.
func (p *checkedPair) end(start agentwire.Start, flushed bool) {
	p.t.Helper()
	p.sleep(200, 400)
	r := p.check.Stop()
	handedOver := start.Result == agentwire.StartHandedOver
	if len(r.Findings) > 0 || handedOver && r.Lost > 0 || r.Err != nil {
		p.t.Errorf("start %+v: %.4000s", start, r)
	}
	if handedOver {
		want := otherItems
		if flushed { // these are older than a second
			want = 0
		}
		wantNewTokens(p.t, p.next.Address())
		if kept := p.kept(); kept != want {
			p.t.Errorf("%d other items are there, want %d; start %+v", kept, want, start)
		}
	}
	if evictions := p.next.AsCache().Stats("stats")["evictions"]; evictions != "0" {
		p.t.Errorf("%q evictions", evictions)
	}
	p.t.Logf("%s: %s; %.200s; longest time without an answer %s", start.Result, start.Reason, r, r.Longest.Round(time.Millisecond))
}

// kept returns how many of the items that no client uses are in the new pod.
func (p *checkedPair) kept() int {
	p.t.Helper()
	others := items.New("other", otherItems, p.next.Address())
	defer others.Close()
	kept, err := others.Count()
	if err != nil {
		p.t.Error(err)
	}
	return kept
}

// Two pods of a shard hand over while clients use all commands. "-runs 200" repeats it.
func TestHandoverLosesNoWriteAndReturnsNoStaleValue(t *testing.T) {
	for n := range runs() {
		from, to, surge := pods.Versions[n%3], pods.Versions[n/3%3], n%2 == 1
		flush := n%5 == 4
		t.Run(fmt.Sprintf("%d from %s to %s surge=%t flush=%t", n, from, to, surge, flush), func(t *testing.T) {
			t.Parallel()
			_, start, _ := untilHandedOver(t, func() (*checkedPair, agentwire.Start, error) {
				p := newCheckedPair(t, uint64(n), from, to)
				p.begin(uint64(n))
				flushed := make(chan error, 1)
				if flush {
					delay := time.Duration(p.random.IntN(1500)) * time.Millisecond
					time.AfterFunc(delay, func() {
						var err error // a server that can't be reached confirms nothing
						pods.Eventually(func() bool { err = p.check.FlushAll(0); return err == nil })
						flushed <- err
					})
				}
				p.trigger(surge)
				start := p.moved()
				if code := p.old.Exit(); code != 0 {
					t.Errorf("the old agent exited with code %d", code)
				}
				if flush {
					if err := <-flushed; err != nil {
						t.Errorf("flush_all: %v", err)
					}
				}
				p.end(start, flush)
				return p, start, nil
			})
			if start.Result != agentwire.StartHandedOver {
				t.Errorf("start %+v, want %s", start, agentwire.StartHandedOver)
			}
		})
	}
}

// interruptions of a handover return whether the new pod must get the items nevertheless.
var interruptions = []struct {
	name string
	do   func(*checkedPair) bool
}{
	{"the old pod is killed", func(p *checkedPair) bool {
		_ = syscall.Kill(-p.old.Command.Process.Pid, syscall.SIGKILL)
		return false
	}},
	{"the container of the new pod restarts", func(p *checkedPair) bool {
		p.next.Kill()
		// While its memcached answers, the old pod has not confirmed the end.
		confirmed := pods.Greet(p.old.Address()) != nil
		p.next.Launch()
		return !confirmed
	}},
	{"the connection is cut", func(p *checkedPair) bool {
		p.wire.cut()
		return true
	}},
}

// What interrupts a handover may cost the items and nothing else. A wrong or old value is never returned, and a pod that
// reports a handover has all items.
func TestInterruptedHandoverReturnsNoStaleValue(t *testing.T) {
	for n := range runs() {
		fault, atEnd := interruptions[n%3], n/3%2 == 1
		from, to, surge := pods.Versions[n/2%3], pods.Versions[n%3], n%4 > 1
		t.Run(fmt.Sprintf("%d %s from %s to %s surge=%t end=%t", n, fault.name, from, to, surge, atEnd), func(t *testing.T) {
			t.Parallel()
			for range attempts {
				p := newCheckedPair(t, uint64(n), from, to)
				p.relay(n)
				p.begin(uint64(n))
				p.trigger(surge)
				if atEnd {
					// The old memcached has stopped, and the new pod does not have everything yet.
					pods.Eventually(func() bool { return pods.Greet(p.old.Address()) != nil || p.old.HasExited() })
					p.sleep(0, 50)
				} else {
					p.sleep(0, 700)
				}
				hands := fault.do(p)
				start := p.moved()
				p.end(start, false)
				// At the end, the new pod may have everything before the old one learns of it, and then there is no second try.
				if !hands || atEnd || start.Result == agentwire.StartHandedOver {
					return
				}
				t.Logf("the handover failed by itself: %s", start.Reason)
			}
			t.Error("no handover was finished after its interruption")
		})
	}
}

// wire passes connections on, until it cuts all of them.
type wire struct {
	mu    sync.Mutex
	conns []net.Conn
}

// relay has the old pod report an address at which its connections for handovers can be cut.
func (p *checkedPair) relay(n int) {
	p.t.Helper()
	address := fmt.Sprintf("127.78.%d.%d", n/250, 1+n%250)
	port := strconv.Itoa(p.old.HandoverPort)
	p.old.Wrap = []string{"env", "POD_IP=" + address}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
	pods.Must(p.t, err)
	p.wire = &wire{}
	var running sync.WaitGroup
	p.t.Cleanup(func() {
		_ = listener.Close()
		p.wire.cut()
		running.Wait()
	})
	running.Go(func() {
		for {
			target, err := listener.Accept()
			if err != nil {
				return
			}
			source, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
			if err != nil {
				_ = target.Close()
				continue
			}
			p.wire.mu.Lock()
			p.wire.conns = append(p.wire.conns, target, source)
			p.wire.mu.Unlock()
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_ = to.Close()
				_ = from.Close()
			}
			running.Go(func() { pass(source, target) })
			running.Go(func() { pass(target, source) })
		}
	})
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}

// wantNewTokens checks that no token of the old memcached can match: the new one numbers its changes from elsewhere.
func wantNewTokens(t *testing.T, address string) {
	t.Helper()
	pods.Fill(t, address, 1)
	found := false
	for line := range strings.Lines(pods.Talk(t, address, "gets other-0 item-0\r\n")) {
		words := strings.Fields(line)
		if words[0] != "VALUE" {
			continue
		}
		found = true
		if token, err := strconv.ParseUint(words[len(words)-1], 10, 64); err != nil || token < firstToken {
			t.Errorf("the token of %s is %v, want at least %d", words[1], words, uint64(firstToken))
		}
	}
	if !found {
		t.Error("no item is there")
	}
}
