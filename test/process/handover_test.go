package process

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

// asCache lets the tests of snapshots' helpers read and write the items of a shard.
func (s *shard) asCache() *cache { return &cache{t: s.t, port: s.port} }

func (s *shard) waitForPhase(phase agentwire.Phase) agentwire.Status {
	s.t.Helper()
	return s.waitFor("phase "+string(phase), func(status agentwire.Status) bool { return status.Phase == phase })
}

// wantCold checks that the shard starts without any item, and the reason.
func (s *shard) wantCold(reason string) {
	s.t.Helper()
	start := s.waitForPhase(agentwire.PhaseServing).Start
	s.t.Log(start.Reason)
	if start.Result != agentwire.StartCold || start.Items != 0 || !strings.Contains(start.Reason, reason) {
		s.t.Errorf("start %+v, want Cold because of %q", start, reason)
	}
	if status := s.status(); status.Items != 0 {
		s.t.Errorf("it serves %d items", status.Items)
	}
}

func wantHandedOver(t *testing.T, start agentwire.Start, size int64) {
	t.Helper()
	t.Log(start.Reason)
	if start.Result != agentwire.StartHandedOver || start.Items != size || start.ItemsBefore != size || start.At.IsZero() ||
		start.HandoverSeconds <= 0 || start.GapSeconds <= 0 || start.GapSeconds > start.HandoverSeconds || start.UnavailableSeconds != start.GapSeconds {
		t.Errorf("start %+v, want HandedOver with %d items", start, size)
	}
}

func TestDrainedPodHandsItsItemsOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to     string
		before, next []string
	}{
		"to the same version":           {newest, newest, nil, nil},
		"to a newer version":            {oldest, newest, nil, nil},
		"to an older version":           {newest, oldest, nil, nil},
		"between versions in between":   {middle, middle, nil, nil},
		"to more memory":                {newest, newest, []string{"-m", "64"}, []string{"-m", "128"}},
		"to less memory":                {newest, newest, []string{"-m", "128"}, []string{"-m", "64"}},
		"to larger items":               {oldest, newest, nil, []string{"-I", "4m"}},
		"to another growth factor":      {newest, middle, nil, []string{"-f", "1.5"}},
		"from a memcached without CAS":  {newest, newest, []string{"-C"}, nil},
		"to one without chunked items":  {newest, newest, nil, []string{"-o", "no_chunked_items"}},
		"with the flag for large pages": {middle, newest, []string{"-I", "8m"}, []string{"-I", "8m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next, _ := newPair(t)
			old.memcached, next.memcached = memcachedPath(c.from), memcachedPath(c.to)
			old.annotate(agentwire.ArgumentsFile, old.arguments(c.before...))
			next.annotate(agentwire.ArgumentsFile, next.arguments(c.next...))
			old.run()
			entries := someItems(1, 2000)
			old.asCache().put(entries)
			began := time.Now()
			want := old.asCache().get(names(entries))

			old.signal(syscall.SIGTERM)
			next.launch()
			status := next.waitForPhase(agentwire.PhaseServing)
			wantHandedOver(t, status.Start, int64(len(entries)))
			if code := old.exitWithoutDrain(); code != 0 {
				t.Errorf("the other agent exited with code %d", code)
			}
			have := next.asCache().get(names(entries))
			wantItemsWithin(t, 2*time.Second+time.Since(began), have, want)
			if status.Version != c.to || status.Handover != nil {
				t.Errorf("version %s, progress %+v", status.Version, status.Handover)
			}
		})
	}
}

func TestItemsThatDoNotFitAreNotHandedOver(t *testing.T) {
	t.Parallel()
	old, next, _ := newPair(t)
	old.annotate(agentwire.ArgumentsFile, old.arguments("-I", "4m"))
	old.run()
	fill(t, old.address(), 1000)
	large := map[string]entry{"large": {strings.Repeat("x", 2<<20), 1, -1}}
	old.asCache().put(large)
	old.signal(syscall.SIGTERM)
	next.launch()
	start := next.waitForPhase(agentwire.PhaseServing).Start
	if start.Result != agentwire.StartHandedOver || start.ItemsBefore != 1001 || start.Items != 1000 {
		t.Errorf("start %+v, want 1000 of 1001 items", start)
	}
	if n := count(t, next.address(), 1000); n != 1000 {
		t.Errorf("%d of 1000 items were handed over", n)
	}
	old.exitWithoutDrain()
}

// A client reads a token from the old pod and writes with it to the new one.
func TestCASTokenOfTheOldPodMatchesNoItemOfTheNewOne(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			old, next, _ := newPair(t)
			old.memcached, next.memcached = memcachedPath(version), memcachedPath(version)
			old.run()
			fill(t, old.address(), 100)
			tokens := map[string]string{}
			for i := range 100 {
				key := "item-" + strconv.Itoa(i)
				tokens[key] = token(t, old, key)
			}
			old.signal(syscall.SIGTERM)
			next.launch()
			wantHandedOver(t, next.waitForPhase(agentwire.PhaseServing).Start, 100)
			for key, old := range tokens {
				if now := token(t, next, key); slices.Contains(slices.Collect(maps.Values(tokens)), now) {
					t.Fatalf("%s has the token %s of an item of the old pod", key, now)
				}
				if answer := talk(t, next.address(), fmt.Sprintf("cas %s 0 0 1 %s\r\nx\r\n", key, old)); answer != "EXISTS\r\n" {
					t.Fatalf("cas with the token of the old pod: %q", answer)
				}
			}
			if answer := talk(t, next.address(), fmt.Sprintf("cas item-1 0 0 1 %s\r\nx\r\n", token(t, next, "item-1"))); answer != "STORED\r\n" {
				t.Errorf("cas with the token of the new pod: %q", answer)
			}
		})
	}
}

func token(t *testing.T, s *shard, key string) string {
	t.Helper()
	words := strings.Fields(talk(t, s.address(), "gets "+key+"\r\n"))
	if len(words) < 5 {
		t.Fatalf("%s is not there: %q", key, words)
	}
	return words[4]
}

// The operator deletes the old pod when it sees that the new one waits.
func TestNewPodWaitsUntilTheOldOneIsDeleted(t *testing.T) {
	t.Parallel()
	old, next, _ := newPair(t)
	old.run()
	fill(t, old.address(), 1000)
	next.launch()
	next.waitForPhase(agentwire.PhaseReceiving)
	time.Sleep(2 * time.Second)
	status := next.waitForPhase(agentwire.PhaseReceiving)
	if status.PodUID != "next" || status.Handover == nil || status.Handover.Items != 0 {
		t.Errorf("while it waits: %+v", status)
	}
	if code, body, err := next.get("/healthz"); err != nil || code != http.StatusOK {
		t.Errorf("/healthz: %d %s, %v", code, body, err)
	}
	if code, body, err := next.get("/readyz"); err != nil || code == http.StatusOK {
		t.Errorf("/readyz: %d %s, %v", code, body, err)
	}
	if status := old.status(); status.Phase != agentwire.PhaseServing || status.Items != 1000 {
		t.Errorf("the old pod: %+v", status)
	}
	old.signal(syscall.SIGTERM)
	wantHandedOver(t, next.waitForPhase(agentwire.PhaseServing).Start, 1000)
	old.exitWithoutDrain()
}

func TestPodStartsWithoutItemsIfThereIsNoHandover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, old, next *shard)
		reason  string
	}{
		"because the old pod has no key": {func(_ *testing.T, old, _ *shard) {
			old.handoverKey = ""
		}, "pod old does not hand over its items"},
		"because the old pod's key file is missing": {func(_ *testing.T, old, _ *shard) {
			old.handoverKey += "-missing"
		}, "pod old does not hand over its items"},
		"because the new pod's key file is missing": {func(_ *testing.T, _, next *shard) {
			next.handoverKey += "-missing"
		}, "reading the key of the handover"},
		"because the new pod has another key": {func(t *testing.T, _, next *shard) {
			writeFile(t, next.handoverKey, strings.Repeat("another key", 3)[:32])
		}, "the items can't be handed over: the peer has another handover key"},
		"because that is off": {func(_ *testing.T, _, next *shard) {
			next.handoverKey = ""
		}, "first start of this pod"},
		"because the file has no items (extstore)": {func(t *testing.T, old, _ *shard) {
			old.annotate(agentwire.ArgumentsFile, old.arguments("-o", "ext_path="+old.dir+"/ext:64m"))
		}, "the handover from pod old failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next, _ := newPair(t)
			c.prepare(t, old, next)
			old.run()
			fill(t, old.address(), 1000)
			stop := make(chan struct{})
			memcacheds := newService(t, old.address())
			visits := visit(memcacheds.address(), stop)
			old.signal(syscall.SIGTERM)
			next.launch()
			next.wantCold(c.reason)
			memcacheds.backend.Store(ref(next.address()))
			if code := old.exitWithoutDrain(); code != 0 {
				t.Errorf("the old agent exited with code %d", code)
			}
			close(stop)
			if n := <-visits; n[1] != 0 {
				t.Errorf("%d of %d connections failed", n[1], n[0])
			}
			if !exists(old.meta()) {
				t.Error("the old pod did not save its items")
			}
		})
	}
}

func TestFirstPodOfAShardStartsAtOnce(t *testing.T) {
	t.Parallel()
	_, next, _ := newPair(t)
	if start := next.run().Start; start.Result != agentwire.StartCold || start.Reason != "no saved items: first start of this pod" {
		t.Errorf("start %+v", start)
	}
}

func TestHungServiceDelaysTheFirstStartOnly(t *testing.T) {
	t.Parallel()
	_, next, _ := newPair(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections and does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	next.service = listener.Addr().String()
	next.launch()
	next.wantCold("no saved items: first start of this pod, and no other pod responded within 10s: ")
	fill(t, next.address(), 10)
	next.stopContainer()
	wantWarm(t, next.run(), 10)
}

// The operator fills the shard.
func TestPodWithAReadinessHoldReceivesNothing(t *testing.T) {
	t.Parallel()
	old, next, _ := newPair(t)
	old.run()
	fill(t, old.address(), 100)
	next.delayReadiness(time.Now().Add(time.Hour))
	next.launch()
	next.wantCold("first start of this pod")
	next.wantReady(false)
}

// slowPair returns two pods of which the first is draining and the second receives many items.
func slowPair(t *testing.T, size int) (old, next *shard) {
	t.Helper()
	old, next, _ = newPair(t, "-m", "256")
	old.run()
	pour(t, old.address(), size)
	old.signal(syscall.SIGTERM)
	next.launch()
	next.waitFor("the first items", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseReceiving && status.Handover.Items > 0
	})
	return old, next
}

// manyItems take seconds at the rate of a handover while clients use the old pod.
const manyItems = 200_000

func TestPodStartsWithoutItemsIfTheOldOneDies(t *testing.T) {
	t.Parallel()
	t.Run("before the end", func(t *testing.T) {
		t.Parallel()
		old, next := slowPair(t, manyItems)
		old.kill()
		next.wantCold("the handover from pod old failed")
	})
	t.Run("at a second SIGTERM", func(t *testing.T) {
		t.Parallel()
		old, next := slowPair(t, manyItems)
		old.signal(syscall.SIGTERM)
		if code := old.exitWithoutDrain(); code != 0 || !exists(old.meta()) {
			t.Errorf("code %d, saved %t", code, exists(old.meta()))
		}
		next.wantCold("the handover from pod old failed")
	})
	t.Run("because its memcached does", func(t *testing.T) {
		t.Parallel()
		old, next := slowPair(t, manyItems)
		if err := syscall.Kill(old.status().PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code := old.exit(); code == 0 {
			t.Error("the old agent exited with code 0")
		}
		next.wantCold("the handover from pod old failed")
	})
	t.Run("during the end", func(t *testing.T) {
		t.Parallel()
		old, next, _ := slowEnd(t)
		old.kill()
		next.wantCold("the handover from pod old failed")
	})
}

// kill ends a pod without a warning.
func (s *shard) kill() {
	s.t.Helper()
	if err := syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	<-s.exited
}

// slowEnd returns two pods of which the first has stopped its memcached, and waits for the
// second one's acknowledgement, which takes seconds to arrive.
func slowEnd(t *testing.T) (old, next *shard, link *slowLink) {
	t.Helper()
	old, next, _ = newPair(t, "-m", "256")
	link = newSlowLink(t, old)
	old.run()
	pour(t, old.address(), manyItems)
	old.signal(syscall.SIGTERM)
	next.launch()
	next.waitFor("the first items", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseReceiving && status.Handover.Items > 0
	})
	link.slow.Store(true)
	old.waitForPhase(agentwire.PhaseStopping)
	return old, next, link
}

// slowLink forwards connections to the handover port of a pod.
type slowLink struct {
	slow atomic.Bool
	// rate bounds what the source sends, in bytes a second; 0 is no bound.
	rate int64
}

var slowLinks atomic.Int32

func newSlowLink(t *testing.T, source *shard) *slowLink {
	t.Helper()
	l := &slowLink{}
	source.podIP = fmt.Sprintf("127.77.8.%d", slowLinks.Add(1))
	port := strconv.Itoa(source.handoverPort)
	listener, err := net.Listen("tcp", net.JoinHostPort(source.podIP, port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			target, err := listener.Accept()
			if err != nil {
				return
			}
			source, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				_ = target.Close()
				continue
			}
			go func() {
				l.answer(source.(*net.TCPConn), target)
				_ = target.Close()
			}()
			go func() {
				l.forward(target, source)
				_ = source.Close()
			}()
		}
	}()
	return l
}

func (l *slowLink) answer(source *net.TCPConn, target io.Writer) {
	const interval = 10 * time.Millisecond
	if l.rate == 0 {
		_, _ = io.Copy(target, source)
		return
	}
	_ = source.SetReadBuffer(64 << 10)
	for {
		if _, err := io.CopyN(target, source, l.rate*int64(interval)/int64(time.Second)); err != nil {
			return
		}
		time.Sleep(interval)
	}
}

// forward keeps the order, and loses what it delays when the target closes the connection.
func (l *slowLink) forward(target io.Reader, source io.Writer) {
	type part struct {
		at   time.Time
		data []byte
	}
	parts := make(chan part, 1024)
	defer close(parts)
	go func() {
		for p := range parts {
			time.Sleep(time.Until(p.at))
			_, _ = source.Write(p.data)
		}
	}()
	for data := make([]byte, 64<<10); ; {
		n, err := target.Read(data)
		if err != nil {
			return
		}
		p := part{time.Now(), bytes.Clone(data[:n])}
		if l.slow.Load() {
			p.at = p.at.Add(4 * time.Second)
		}
		parts <- p
	}
}

func TestOldPodServesOnIfTheNewOneDies(t *testing.T) {
	t.Parallel()
	launchThird := func(t *testing.T, next *shard) *shard {
		t.Helper()
		third := newShard(t)
		third.podUID, third.handoverKey, third.service = "third", next.handoverKey, next.service
		third.annotate(agentwire.ArgumentsFile, third.arguments("-m", "256"))
		third.launch()
		return third
	}
	wantTakenOver := func(t *testing.T, old, third *shard, size int) {
		t.Helper()
		wantHandedOver(t, third.waitForPhase(agentwire.PhaseServing).Start, int64(size))
		if n := count(t, third.address(), size); n != size {
			t.Errorf("the third pod serves %d of %d items", n, size)
		}
		if code := old.exitWithoutDrain(); code != 0 {
			t.Errorf("the old agent exited with code %d", code)
		}
	}
	t.Run("before the end", func(t *testing.T) {
		t.Parallel()
		old, next := slowPair(t, manyItems)
		third := launchThird(t, next)
		third.waitForPhase(agentwire.PhaseReceiving)
		next.kill()
		if status := old.status(); status.Phase != agentwire.PhaseDraining || status.Items != manyItems {
			t.Errorf("the old pod: %+v", status)
		}
		wantTakenOver(t, old, third, manyItems)
	})
	t.Run("during the end", func(t *testing.T) {
		t.Parallel()
		old, next, link := slowEnd(t)
		next.kill()
		link.slow.Store(false)
		status := old.waitForPhase(agentwire.PhaseDraining)
		if n := count(t, old.address(), manyItems); n != manyItems {
			t.Errorf("the old pod serves %d of %d items: %+v", n, manyItems, status)
		}
		wantTakenOver(t, old, launchThird(t, next), manyItems)
	})
}

// It has only a part of the items, which the next memcached must not serve.
func TestRestartedReceiverReceivesAllItems(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *shard){
		"after a SIGTERM": func(t *testing.T, next *shard) {
			next.signal(syscall.SIGTERM)
			if code := next.exit(); code != 0 || exists(next.meta()) {
				t.Errorf("code %d, saved %t", code, exists(next.meta()))
			}
		},
		"after an announced stop": func(t *testing.T, next *shard) {
			next.announce("upgrade")
			next.signal(syscall.SIGTERM)
			if code := next.exit(); code != 0 || exists(next.meta()) {
				t.Errorf("code %d, saved %t", code, exists(next.meta()))
			}
		},
		"after a kill of its container": func(_ *testing.T, next *shard) { next.kill() },
		"after memcached died": func(t *testing.T, next *shard) {
			if err := syscall.Kill(next.status().PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next := slowPair(t, manyItems)
			stop(t, next)
			old.waitForPhase(agentwire.PhaseDraining)
			if next.hasExited() {
				next.launch()
			}
			wantHandedOver(t, next.waitForPhase(agentwire.PhaseServing).Start, manyItems)
			if n := count(t, next.address(), manyItems); n != manyItems {
				t.Errorf("%d of %d items were handed over", n, manyItems)
			}
			old.exitWithoutDrain()
		})
	}
}

func TestPodWithAKeyDrainsWithoutAReplacement(t *testing.T) {
	t.Parallel()
	old, _, _ := newPair(t)
	old.drainTimeout = 2 * time.Second
	old.run()
	fill(t, old.address(), 1000)
	began := time.Now()
	old.signal(syscall.SIGTERM)
	if code := old.exit(); code != 0 || !exists(old.meta()) {
		t.Errorf("code %d, saved %t", code, exists(old.meta()))
	}
	if took := time.Since(began); took < old.drainTimeout {
		t.Errorf("it exited after %s", took)
	}
}

func TestHandoverEndsInTime(t *testing.T) {
	t.Parallel()
	old, next, _ := newPair(t, "-m", "256")
	old.drainTimeout = 5 * time.Second // the end has to begin at once, without a live pass
	old.run()
	pour(t, old.address(), manyItems)
	next.launch()
	next.waitForPhase(agentwire.PhaseReceiving)
	old.signal(syscall.SIGTERM)
	wantHandedOver(t, next.waitForPhase(agentwire.PhaseServing).Start, manyItems)
	if n := count(t, next.address(), manyItems); n != manyItems {
		t.Errorf("%d of %d items were handed over", n, manyItems)
	}
	if code := old.exit(); code != 0 {
		t.Errorf("the old agent exited with code %d", code)
	}
}

func TestRecentlyUsedItemsAreHandedOverWhenTimeIsShort(t *testing.T) {
	t.Parallel()
	old, next, _ := newPair(t, "-m", "256")
	newSlowLink(t, old).rate = 3 << 20
	old.drainTimeout = 8 * time.Second
	old.run()
	const cold, hot = 2400, 100
	store := func(name string, size int) map[string]entry {
		entries := map[string]entry{}
		for i := range size {
			entries[fmt.Sprintf("%s-%d", name, i)] = entry{strings.Repeat("x", 64<<10), 1, -1}
		}
		old.asCache().put(entries)
		return entries
	}
	store("cold", cold)
	time.Sleep(2100 * time.Millisecond) // memcached's clock has seconds
	recent := store("hot", hot)
	next.launch()
	next.waitForPhase(agentwire.PhaseReceiving)
	old.signal(syscall.SIGTERM)
	start := next.waitForPhase(agentwire.PhaseServing).Start
	t.Log(start.Reason)
	if start.Result != agentwire.StartHandedOver || start.ItemsBefore != cold+hot || start.Items >= cold {
		t.Errorf("start %+v, want a part of the %d items", start, cold+hot)
	}
	if got := next.asCache().get(names(recent)); len(got) != hot {
		t.Errorf("%d of the %d items that were used last were handed over", len(got), hot)
	}
	old.exitWithoutDrain()
}

// The pod is ready for the probe that waits, and does not wait for the next one.
func TestProbeReportsTheEndOfAHandoverAtOnce(t *testing.T) {
	t.Parallel()
	old, next := slowPair(t, manyItems)
	for {
		code, _, err := next.get("/readyz")
		if err != nil {
			t.Fatal(err)
		}
		if code == http.StatusOK {
			break
		}
	}
	since := time.Since(next.status().Start.At)
	t.Logf("ready %s after the end", since.Round(time.Millisecond))
	wantHandedOver(t, next.status().Start, manyItems)
	old.exitWithoutDrain()
}

func TestAnnouncedChangesWaitForTheEndOfAHandover(t *testing.T) {
	t.Parallel()
	old, next := slowPair(t, manyItems)
	for _, s := range []*shard{old, next} {
		s.annotate(agentwire.ArgumentsFile, s.arguments("-m", "256", "-t", "2"))
		s.annotate(agentwire.RestartFile, "now")
	}
	status := next.waitFor("the restart", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseServing && status.Restart == "now"
	})
	wantWarm(t, status, manyItems)
	if code := old.exitWithoutDrain(); code != 0 {
		t.Errorf("the old agent exited with code %d", code)
	}
	if n := count(t, next.address(), manyItems); n != manyItems {
		t.Errorf("%d of %d items", n, manyItems)
	}
}

// pour writes items without waiting for each answer.
func pour(t *testing.T, address string, size int) {
	t.Helper()
	set := items.New("item", size, address)
	defer set.Close()
	if err := set.Fill(); err != nil {
		t.Fatal(err)
	}
}
