package handover

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// connectTo connects to a source and returns after the handshake.
func connectTo(t *testing.T, network *fake.Network, config *tls.Config) (*link, error) {
	t.Helper()
	conn, err := network.DialContext(t.Context(), "tcp", sourceAddress)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, config)
	return newLink(secured), secured.HandshakeContext(t.Context())
}

func testIdentity(t *testing.T) *tls.Config {
	t.Helper()
	config, err := identity(testKey)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// script is a peer that follows the protocol for a number of steps.
type script struct {
	t    *testing.T
	link *link
	stop context.CancelFunc // of the beats
	// available is whether it wants to serve before the end.
	available bool
}

func newScript(t *testing.T, network *fake.Network) *script {
	t.Helper()
	l, err := connectTo(t, network, testIdentity(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, link: l}
	s.beat()
	return s
}

func (s *script) beat() {
	var ctx context.Context
	ctx, s.stop = context.WithCancel(s.t.Context())
	go s.link.Beat(ctx)
}

// targetSteps are what a target does, in this order.
var targetSteps = []string{"hello", "offer", "pass", "done", "finish", "end", "acknowledge"}

func (s *script) follow(pod string, steps int) {
	s.t.Helper()
	all := targetSteps
	if s.available {
		all = availableSteps
	}
	for _, step := range all[:steps] {
		if err := s.step(step, pod); err != nil {
			s.t.Fatalf("%s: %v", step, err)
		}
	}
}

func (s *script) step(step, pod string) (err error) {
	switch step {
	case "hello":
		return s.link.Send(kindHello, hello{Versions: []int{protocolVersion}, Pod: pod, Shard: "cache-0", Owner: "owner", Follow: s.available})
	case "offer":
		_, err = expect[offer](s.link, kindOffer)
	case "pass":
		return s.link.Send(kindPass, nil)
	case "follow":
		return s.link.Send(kindFollow, nil)
	case "ask":
		return s.link.SendContent(kindAsk, make([]byte, 8))
	case "answer":
		return s.skip(kindRemoved)
	case "finish":
		return s.link.Send(kindFinish, nil)
	case "acknowledge":
		return s.link.Send(kindAcknowledge, acknowledgement{})
	case "done", "end", "followed":
		return s.skip(kindDone)
	case "confirm":
		return s.skip(kindConfirm)
	}
	return err
}

// skip discards all frames up to one of a kind.
func (s *script) skip(until kind) error {
	for {
		k, size, err := s.link.Next()
		if err != nil {
			return err
		}
		if k == kindError {
			return s.link.Unexpected(k, size)
		}
		if k == kindState {
			return errors.New("agents of release 1.0.0 don't know this kind")
		}
		if _, err := s.link.R.Discard(size); err != nil || k == until {
			return err
		}
	}
}

// A target that dies or hangs leaves the source as it was, whatever step it reached. The next one gets all items.
func TestSourceSurvivesTargetThatFails(t *testing.T) {
	failures := map[string]func(*script){
		"dies": func(s *script) { s.link.Abort() },
		// Frozen, or its node is lost.
		"is silent": func(s *script) { s.stop() },
		// Its main goroutine hangs.
		"only sends beats":   func(*script) {},
		"sends garbage":      func(s *script) { _, _ = s.link.Conn.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 10)) },
		"sends a long frame": func(s *script) { _, _ = s.link.Conn.Write([]byte("a\xff\xff\xff\xff")) },
		"sends items":        func(s *script) { _ = s.link.SendContent(kindRemoved, make([]byte, 8)) },
	}
	for name, fail := range failures {
		for steps := range targetSteps {
			t.Run(fmt.Sprintf("%s before %s", name, targetSteps[steps]), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					origin, cache := newOrigin(500), newCache(t)
					source := start(t, cache.network, offerOf(origin, 500))
					first := newScript(t, cache.network)
					first.follow("first", steps)
					synctest.Wait()
					fail(first)
					if _, err := receiveSoon(t, targetOf(t, cache)); err != nil {
						t.Fatal(err)
					}
					source.wait()
					mustEqual(t, cache.snapshot(), origin.snapshot())
					want := "stop, complete"
					if steps >= 5 {
						want = "stop, resume, stop, complete"
					}
					if outcome := origin.outcome(); outcome != want {
						t.Errorf("the source did %s, want %s", outcome, want)
					}
					if origin.reserved != 0 {
						t.Errorf("%d bytes remain reserved", origin.reserved)
					}
				})
			})
		}
	}
}

// After the acknowledgement the source confirms, even if the target can't receive it. No other target gets the items.
func TestSourceThatConfirmedDoesNotResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, network := newOrigin(10), newNetwork(t)
		source := start(t, network, offerOf(origin, 10))
		target := newScript(t, network)
		target.follow("target", len(targetSteps))
		if err := target.step("confirm", ""); err != nil {
			t.Fatal(err)
		}
		for pod, want := range map[string]error{"another": ErrBusy, "target": ErrImpossible} {
			later := newScript(t, network)
			_ = later.step("hello", pod)
			if err := later.step("offer", ""); !errors.Is(err, want) {
				t.Errorf("a later session of pod %s: %v", pod, err)
			}
		}
		target.link.Abort()
		source.wait()
		if outcome := origin.outcome(); outcome != "stop, complete" {
			t.Error(outcome)
		}
	})
}

// sourceSteps are what a source does, in this order.
var sourceSteps = []string{"accept", "handshake", "hello", "offer", "pass", "items", "done", "finish", "items", "done", "acknowledge", "confirm"}

// fakeSource follows the protocol for a number of steps, and then fails.
func fakeSource(t *testing.T, network *fake.Network, steps []string, fail func(*script)) {
	t.Helper()
	config := testIdentity(t)
	if len(steps) == 0 {
		return
	}
	listener := network.Listen(sourceAddress)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		secured := tls.Server(conn, config)
		s := &script{t: t, link: newLink(secured), stop: func() {}}
		for _, step := range steps[1:] {
			switch step {
			case "handshake":
				err = secured.HandshakeContext(t.Context())
				s.beat()
			default:
				err = s.sourceStep(step)
			}
			if err != nil {
				t.Errorf("%s: %v", step, err)
				return
			}
		}
		fail(s)
	}()
}

func (s *script) sourceStep(step string) (err error) {
	l := s.link
	switch step {
	case "hello":
		_, err = expect[hello](l, kindHello)
	case "offer":
		err = l.Send(kindOffer, offer{Version: protocolVersion, Pod: "source", Items: 2, Live: true, Follow: true, Milliseconds: time.Hour.Milliseconds(), Now: time.Now().UnixMilli()})
	case "pass", "follow", "ask":
		var size int
		if _, size, err = l.Next(); err == nil {
			_, err = l.R.Discard(size)
		}
	case "finish":
		var k kind
		for k, _, err = l.Next(); err == nil && k == kindFollow; k, _, err = l.Next() { // as often as the target likes
			if err := s.sourceStep("done"); err != nil {
				return err
			}
		}
	case "items":
		_, err = l.sendItem(&memfile.Item{Key: []byte("k"), Value: []byte("v"), Size: 2}, newHasher())
	case "done":
		err = l.Send(kindDone, done{Items: 1, Complete: true, Routed: true})
	case "acknowledge":
		_, err = expect[acknowledgement](l, kindAcknowledge)
	}
	return err
}

// A target whose source dies or hangs returns an error, whatever step was reached: without the
// confirmation it must not serve.
func TestTargetFailsWithItsSource(t *testing.T) {
	failures := map[string]func(*script){
		"dies":             func(s *script) { s.link.Abort() },
		"only sends beats": func(*script) {},
		"is silent":        func(s *script) { s.stop() },
		"sends garbage":    func(s *script) { _, _ = s.link.Conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"fails":            func(s *script) { _ = s.link.Fail(errTest) },
		"sends a command":  func(s *script) { _ = s.link.Send(kindPass, nil) },
	}
	for name, fail := range failures {
		for steps := range sourceSteps {
			if steps < 3 && name != "dies" && name != "only sends beats" {
				continue // there is no connection yet
			}
			t.Run(fmt.Sprintf("%s before %d %s", name, steps, sourceSteps[steps]), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cache := newCache(t)
					fakeSource(t, cache.network, sourceSteps[:steps], fail)
					within(t, "the target", func() {
						result, err := Receive(t.Context(), targetOf(t, cache))
						if err == nil {
							t.Errorf("it received %+v", result)
						}
						for _, known := range []error{ErrBusy, ErrNotStarted, ErrImpossible} {
							if errors.Is(err, known) {
								t.Error(err)
							}
						}
					})
				})
			})
		}
	}
}

// A peer that completes the protocol in this fixture is accepted: the failures above are what fails.
func TestTargetAcceptsFakeSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := newCache(t)
		fakeSource(t, cache.network, sourceSteps, func(s *script) { _ = s.link.Send(kindConfirm, confirmation{Milliseconds: 7}) })
		target, began := targetOf(t, cache), time.Now()
		target.Progress = func(Progress) { // it waits between the first pass and the end
			if time.Since(began) < time.Minute {
				_ = peerlink.Sleep(t.Context(), time.Minute)
			}
		}
		target.Announced = func() (bool, time.Duration) { // an older source knows no second hello
			return false, time.Since(began).Truncate(time.Second)
		}
		result, err := Receive(t.Context(), target)
		if err != nil || result.Gap != 7*time.Millisecond {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

func TestConnectionsWithoutTheKeyAreRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		var offers atomic.Int64
		start(t, cache.network, func(ctx context.Context) (Offer, error) {
			offers.Add(1)
			return offerOf(origin, 100)(ctx)
		})

		other := bytes.Repeat([]byte("o"), peerlink.KeySize)
		target := targetOf(t, cache)
		target.Key = other
		if _, err := Receive(t.Context(), target); !errors.Is(err, peerlink.ErrOtherKey) || !errors.Is(err, ErrImpossible) {
			t.Errorf("a target with another key: %v", err)
		}
		// A peer that accepts any source, with a key of its own or with none.
		for name, key := range map[string][]byte{"another key": other, "no certificate": nil} {
			config := &tls.Config{InsecureSkipVerify: true}
			if key != nil {
				config, _ = identity(key)
				config.VerifyConnection = nil
			}
			if l, err := connectTo(t, cache.network, config); err == nil {
				_ = l.Send(kindHello, hello{Versions: []int{protocolVersion}, Pod: "p", Shard: "cache-0", Owner: "owner"})
				if _, err = expect[offer](l, kindOffer); err == nil {
					t.Errorf("%s: got an offer", name)
				}
			}
		}
		// Scanners: more of them than connections are served at a time, none of which says anything.
		for i := range maxConnections + 4 {
			conn, err := cache.network.DialContext(t.Context(), "tcp", sourceAddress)
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
			}
		}
		synctest.Wait()
		if n := offers.Load(); n != 0 {
			t.Errorf("%d offers", n)
		}
		if _, err := Receive(t.Context(), targetOf(t, cache)); err != nil {
			t.Error(err)
		}
		mustEqual(t, cache.snapshot(), origin.snapshot())
	})
}

// Without the key, each of these connections may stay open for a minute.
func TestSilentConnectionsDelayNoTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		flood := func() {
			for range 3 * maxConnections {
				if _, err := cache.network.DialContext(t.Context(), "tcp", sourceAddress); err != nil {
					t.Error(err)
				}
			}
		}
		start(t, cache.network, func(ctx context.Context) (Offer, error) {
			flood() // closes no connection of a target with the key
			return offerOf(origin, 100)(ctx)
		})
		flood()
		ctx, cancel := context.WithTimeout(t.Context(), peerlink.OpenTimeout/2)
		defer cancel()
		if _, err := Receive(ctx, targetOf(t, cache)); err != nil {
			t.Fatal(err)
		}
		mustEqual(t, cache.snapshot(), origin.snapshot())
	})
}

// exhausted fails to accept connections for a while.
type exhausted struct {
	net.Listener
	failures atomic.Int64
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestSourceAcceptsTargetsAfterItHadTooManyOpenFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		failing := &exhausted{Listener: cache.network.Listen(sourceAddress)}
		failing.failures.Store(3)
		source := startOn(t, failing, offerOf(origin, 100))
		if _, err := Receive(t.Context(), targetOf(t, cache)); err != nil {
			t.Fatal(err)
		}
		source.wait()
		mustEqual(t, cache.snapshot(), origin.snapshot())
	})
}

func TestShortKeyIsAnError(t *testing.T) {
	if _, err := identity(testKey[:peerlink.KeySize-1]); err == nil {
		t.Error("a short key is accepted")
	}
}

// The source sends them before it has sent any item.
func TestErrorsOfTheSourceAreIdentified(t *testing.T) {
	cases := map[string]struct {
		offer  error
		change func(*Target)
		want   error
	}{
		"not started":      {offer: fmt.Errorf("pod: %w", ErrNotStarted), want: ErrNotStarted},
		"impossible":       {offer: fmt.Errorf("%w: extstore", ErrImpossible), want: ErrImpossible},
		"unknown layout":   {offer: memfile.ErrLayout, want: ErrImpossible},
		"another shard":    {change: func(target *Target) { target.Shard = "cache-1" }, want: ErrImpossible},
		"another owner":    {change: func(target *Target) { target.Owner = "another" }, want: ErrImpossible},
		"the pod itself":   {change: func(target *Target) { target.Pod = "source" }, want: ErrImpossible},
		"some other error": {offer: errTest},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(10), newCache(t)
				start(t, cache.network, func(ctx context.Context) (Offer, error) {
					offer, _ := offerOf(origin, 10)(ctx)
					return offer, c.offer
				})
				target := targetOf(t, cache)
				if c.change != nil {
					c.change(&target)
				}
				_, err := Receive(t.Context(), target)
				if err == nil || c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if c.want == nil && (errors.Is(err, ErrImpossible) || !strings.Contains(err.Error(), errTest.Error())) {
					t.Error(err)
				}
				if len(cache.moves()) != 0 || cache.writes() != 0 || len(origin.history()) != 0 {
					t.Errorf("moves %v, %d writes, the source did %v", cache.moves(), cache.writes(), origin.history())
				}
			})
		})
	}
}

func TestOtherProtocolVersionIsImpossible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		start(t, network, offerOf(newOrigin(0), 0))
		s := newScript(t, network)
		_ = s.link.Send(kindHello, hello{Versions: []int{protocolVersion + 1}, Pod: "target", Shard: "cache-0", Owner: "owner"})
		if _, err := expect[offer](s.link, kindOffer); !errors.Is(err, ErrImpossible) {
			t.Error(err)
		}
	})
}

func TestFirstTargetKeepsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		source := start(t, cache.network, offerOf(origin, 100))
		first := newScript(t, cache.network)
		first.follow("first", 4)
		if _, err := Receive(t.Context(), targetOf(t, cache)); !errors.Is(err, ErrBusy) {
			t.Errorf("the second target: %v", err)
		}
		if cache.writes() != 0 {
			t.Errorf("the second target has %d items", cache.writes())
		}
		for _, step := range []string{"finish", "end", "acknowledge", "confirm"} {
			if err := first.step(step, ""); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		}
		_ = first.link.Conn.Close()
		source.wait()
	})
}

func TestPodReplacesItsEarlierSession(t *testing.T) {
	for steps := 2; steps < len(targetSteps); steps++ {
		t.Run("before "+targetSteps[steps], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(100), newCache(t)
				source := start(t, cache.network, offerOf(origin, 100))
				first := newScript(t, cache.network)
				first.follow("target", steps)
				if _, err := Receive(t.Context(), targetOf(t, cache)); err != nil {
					t.Fatal(err)
				}
				source.wait()
				mustEqual(t, cache.snapshot(), origin.snapshot())
			})
		})
	}
}

func TestFailedStopIsNotResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(10), newCache(t)
		origin.onStop = func(context.Context) error { return errTest }
		source := start(t, cache.network, offerOf(origin, 10))
		if _, err := Receive(t.Context(), targetOf(t, cache)); err == nil || !strings.Contains(err.Error(), errTest.Error()) {
			t.Error(err)
		}
		source.stop()
		source.wait()
		if outcome := origin.outcome(); outcome != "stop" {
			t.Error(outcome)
		}
	})
}

// A target that is lost during the stop doesn't cancel it: memcached would be in an unknown state.
func TestStopContinuesWithoutTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 4 * peerlink.Silence
		origin, network := newOrigin(10), newNetwork(t)
		origin.onStop = func(ctx context.Context) error { return peerlink.Sleep(ctx, long) }
		start(t, network, offerOf(origin, 10))
		target := newScript(t, network)
		target.follow("target", 5)
		synctest.Wait()
		target.link.Abort()
		_ = peerlink.Sleep(t.Context(), long)
		synctest.Wait()
		if outcome := origin.outcome(); outcome != "stop, resume" {
			t.Error(outcome)
		}
	})
}

func TestFailedScanFailsTheSession(t *testing.T) {
	for scan, want := range map[int]string{1: "", 3: "stop, resume"} {
		t.Run(fmt.Sprint(scan), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(10), newCache(t)
				origin.onScan = func(_ context.Context, n int) error {
					if n == scan {
						return memfile.ErrLayout
					}
					return nil
				}
				source := start(t, cache.network, offerOf(origin, 10))
				if _, err := Receive(t.Context(), targetOf(t, cache)); !errors.Is(err, ErrImpossible) {
					t.Error(err)
				}
				source.stop()
				source.wait()
				if outcome := origin.outcome(); outcome != want {
					t.Error(outcome)
				}
			})
		})
	}
}

// A memcached that hangs or has a scan with unreadable items fails the target.
func TestTargetFailsWithItsMemcached(t *testing.T) {
	cases := map[string]func(*fakeCache, func()){
		"hangs at once":         func(c *fakeCache, hang func()) { c.Before = hangAt("", hang) },
		"hangs at a set":        func(c *fakeCache, hang func()) { c.Before = hangAt("ms", hang) },
		"hangs at a deletion":   func(c *fakeCache, hang func()) { c.Before = hangAt("md", hang) },
		"hangs at the settings": func(c *fakeCache, hang func()) { c.Before = hangAt("slabs", hang) },
		"can't be scanned": func(c *fakeCache, _ func()) {
			c.scanned = func(report *memfile.Report) { report.Unreadable = 1 }
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(2000), newCache(t)
				prepare(cache, func() { <-t.Context().Done() })
				origin.during = func(scan int) {
					if scan == 2 {
						origin.remove("key-7")
					}
				}
				source := start(t, cache.network, offerOf(origin, 2000))
				within(t, "the target", func() {
					if result, err := Receive(t.Context(), targetOf(t, cache)); err == nil {
						t.Errorf("it received %+v", result)
					}
				})
				source.stop()
				source.wait()
				if outcome := origin.outcome(); strings.Contains(outcome, "complete") {
					t.Error(outcome)
				}
			})
		})
	}
}

// idle_timeout of memcached can be shorter than what the source needs for a scan, its stop, or a part of the items.
func TestConnectionThatMemcachedHasClosedIsOpenedAgain(t *testing.T) {
	for name, both := range map[string]bool{"in mode Strict": false, "while both serve": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(1000), newCache(t)
				origin.set("large", entry{value: strings.Repeat("x", 2*maxBuffered)})
				rest := func() {
					_ = peerlink.Sleep(t.Context(), time.Second)
					cache.Disconnect()
					_ = peerlink.Sleep(t.Context(), time.Second)
				}
				origin.during = func(scan int) {
					if rest(); scan == 2 {
						origin.remove("key-7")
					}
				}
				origin.visiting = func(scan int, item int64) {
					if scan == 1 && (item%250 == 0 || item == 1001) { // also before the large one
						rest()
					}
				}
				origin.onStop = func(context.Context) error {
					if rest(); both {
						origin.flush() // the first request after it is no deletion
					}
					return nil
				}
				if both {
					available(t, origin, cache, nil)
					mustEqual(t, cache.snapshot(), map[string]entry{})
					return
				}
				start(t, cache.network, offerOf(origin, 1001))
				if _, err := Receive(t.Context(), targetOf(t, cache)); err != nil {
					t.Fatal(err)
				}
				mustEqual(t, cache.snapshot(), origin.snapshot())
			})
		})
	}
}

func hangAt(command string, hang func()) func(string) string {
	return func(request string) string {
		if strings.HasPrefix(request, command) {
			hang()
		}
		return ""
	}
}

// A peer may be busy for longer than it may be silent.
func TestBusyPeersAreAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		busy := func() { _ = peerlink.Sleep(t.Context(), 3*peerlink.Silence/2) }
		origin.onStop = func(context.Context) error {
			origin.remove("key-7")
			busy()
			return nil
		}
		cache.scanned = func(*memfile.Report) { busy() }
		source := start(t, cache.network, func(ctx context.Context) (Offer, error) {
			busy()
			return offerOf(origin, 100)(ctx)
		})
		if _, err := Receive(t.Context(), targetOf(t, cache)); err != nil {
			t.Fatal(err)
		}
		source.wait()
		mustEqual(t, cache.snapshot(), origin.snapshot())
	})
}

// A scan that couldn't read everything is repeated.
func TestUnreadableItemsAreScannedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		scans := 0
		cache.scanned = func(report *memfile.Report) {
			if scans++; scans == 1 {
				report.Unreadable = 1
			}
		}
		origin.during = func(scan int) {
			if scan == 2 {
				origin.remove("key-7")
			}
		}
		start(t, cache.network, offerOf(origin, 100))
		if _, err := Receive(t.Context(), targetOf(t, cache)); err != nil {
			t.Fatal(err)
		}
		if scans != 2 {
			t.Errorf("%d scans", scans)
		}
		mustEqual(t, cache.snapshot(), origin.snapshot())
	})
}

func TestCanceledContextStopsBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		origin.onScan = func(scan context.Context, _ int) error {
			cancel(errTest)
			<-scan.Done()
			return scan.Err()
		}
		source := start(t, cache.network, offerOf(origin, 100))
		within(t, "the target", func() {
			if _, err := Receive(ctx, targetOf(t, cache)); !errors.Is(err, errTest) {
				t.Error(err)
			}
		})
		source.stop()
		source.wait()
	})
}
