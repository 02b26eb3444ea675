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
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// wantCold checks that the shard starts without any item, and the reason.
func wantCold(s *pods.Shard, reason string) {
	s.T.Helper()
	start := s.WaitForPhase(agentwire.PhaseServing).Start
	s.T.Log(start.Reason)
	if start.Result != agentwire.StartCold || start.Items != 0 || !strings.Contains(start.Reason, reason) {
		s.T.Errorf("start %+v, want Cold because of %q", start, reason)
	}
	if status := s.Status(); status.Items != 0 {
		s.T.Errorf("it serves %d items", status.Items)
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
		"to the same version":           {pods.Newest, pods.Newest, nil, nil},
		"to a newer version":            {pods.Oldest, pods.Newest, nil, nil},
		"to an older version":           {pods.Newest, pods.Oldest, nil, nil},
		"between versions in between":   {pods.Middle, pods.Middle, nil, nil},
		"to more memory":                {pods.Newest, pods.Newest, []string{"-m", "64"}, []string{"-m", "128"}},
		"to less memory":                {pods.Newest, pods.Newest, []string{"-m", "128"}, []string{"-m", "64"}},
		"to larger items":               {pods.Oldest, pods.Newest, nil, []string{"-I", "4m"}},
		"to another growth factor":      {pods.Newest, pods.Middle, nil, []string{"-f", "1.5"}},
		"from a memcached without CAS":  {pods.Newest, pods.Newest, []string{"-C"}, nil},
		"to one without chunked items":  {pods.Newest, pods.Newest, nil, []string{"-o", "no_chunked_items"}},
		"with the flag for large pages": {pods.Middle, pods.Newest, []string{"-I", "8m"}, []string{"-I", "8m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next, _ := pods.NewPair(t)
			old.Memcached, next.Memcached = pods.MemcachedPath(c.from), pods.MemcachedPath(c.to)
			old.Annotate(agentwire.ArgumentsFile, old.Arguments(c.before...))
			next.Annotate(agentwire.ArgumentsFile, next.Arguments(c.next...))
			old.Run()
			entries := someItems(1, 2000)
			putItems(old.AsCache(), entries)
			began := time.Now()
			want := getItems(old.AsCache(), names(entries))

			old.Signal(syscall.SIGTERM)
			next.Launch()
			status := next.WaitForPhase(agentwire.PhaseServing)
			wantHandedOver(t, status.Start, int64(len(entries)))
			if code := old.Exit(); code != 0 {
				t.Errorf("the other agent exited with code %d", code)
			}
			have := getItems(next.AsCache(), names(entries))
			wantItemsWithin(t, 2*time.Second+time.Since(began), have, want)
			if status.Version != c.to || status.Handover != nil {
				t.Errorf("version %s, progress %+v", status.Version, status.Handover)
			}
		})
	}
}

func TestItemsThatDoNotFitAreNotHandedOver(t *testing.T) {
	t.Parallel()
	old, next, _ := pods.NewPair(t)
	old.Annotate(agentwire.ArgumentsFile, old.Arguments("-I", "4m"))
	old.Run()
	pods.Fill(t, old.Address(), 1000)
	large := map[string]entry{"large": {strings.Repeat("x", 2<<20), 1, -1}}
	putItems(old.AsCache(), large)
	old.Signal(syscall.SIGTERM)
	next.Launch()
	start := next.WaitForPhase(agentwire.PhaseServing).Start
	if start.Result != agentwire.StartHandedOver || start.ItemsBefore != 1001 || start.Items != 1000 {
		t.Errorf("start %+v, want 1000 of 1001 items", start)
	}
	if n := pods.Count(t, next.Address(), 1000); n != 1000 {
		t.Errorf("%d of 1000 items were handed over", n)
	}
	old.Exit()
}

// A client reads a token from the old pod and writes with it to the new one.
func TestCASTokenOfTheOldPodMatchesNoItemOfTheNewOne(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			old, next, _ := pods.NewPair(t)
			old.Memcached, next.Memcached = pods.MemcachedPath(version), pods.MemcachedPath(version)
			old.Run()
			pods.Fill(t, old.Address(), 100)
			tokens := map[string]string{}
			for i := range 100 {
				key := "item-" + strconv.Itoa(i)
				tokens[key] = token(t, old, key)
			}
			old.Signal(syscall.SIGTERM)
			next.Launch()
			wantHandedOver(t, next.WaitForPhase(agentwire.PhaseServing).Start, 100)
			for key, old := range tokens {
				if now := token(t, next, key); slices.Contains(slices.Collect(maps.Values(tokens)), now) {
					t.Fatalf("%s has the token %s of an item of the old pod", key, now)
				}
				if answer := pods.Talk(t, next.Address(), fmt.Sprintf("cas %s 0 0 1 %s\r\nx\r\n", key, old)); answer != "EXISTS\r\n" {
					t.Fatalf("cas with the token of the old pod: %q", answer)
				}
			}
			if answer := pods.Talk(t, next.Address(), fmt.Sprintf("cas item-1 0 0 1 %s\r\nx\r\n", token(t, next, "item-1"))); answer != "STORED\r\n" {
				t.Errorf("cas with the token of the new pod: %q", answer)
			}
		})
	}
}

func token(t *testing.T, s *pods.Shard, key string) string {
	t.Helper()
	words := strings.Fields(pods.Talk(t, s.Address(), "gets "+key+"\r\n"))
	if len(words) < 5 {
		t.Fatalf("%s is not there: %q", key, words)
	}
	return words[4]
}

// The operator deletes the old pod when it sees that the new one waits.
func TestNewPodWaitsUntilTheOldOneIsDeleted(t *testing.T) {
	t.Parallel()
	old, next, _ := pods.NewPair(t)
	old.Run()
	pods.Fill(t, old.Address(), 1000)
	next.Launch()
	next.WaitForPhase(agentwire.PhaseReceiving)
	time.Sleep(2 * time.Second)
	status := next.WaitForPhase(agentwire.PhaseReceiving)
	if status.PodUID != "next" || status.Handover == nil || status.Handover.Items != 0 {
		t.Errorf("while it waits: %+v", status)
	}
	if code, body, err := next.Get("/healthz"); err != nil || code != http.StatusOK {
		t.Errorf("/healthz: %d %s, %v", code, body, err)
	}
	if code, body, err := next.Get("/readyz"); err != nil || code == http.StatusOK {
		t.Errorf("/readyz: %d %s, %v", code, body, err)
	}
	if status := old.Status(); status.Phase != agentwire.PhaseServing || status.Items != 1000 {
		t.Errorf("the old pod: %+v", status)
	}
	old.Signal(syscall.SIGTERM)
	wantHandedOver(t, next.WaitForPhase(agentwire.PhaseServing).Start, 1000)
	old.Exit()
}

func TestPodStartsWithoutItemsIfThereIsNoHandover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, old, next *pods.Shard)
		reason  string
	}{
		"because the old pod has no key": {func(_ *testing.T, old, _ *pods.Shard) {
			old.HandoverKey = ""
		}, "pod old does not hand over its items"},
		"because the old pod's key file is missing": {func(_ *testing.T, old, _ *pods.Shard) {
			old.HandoverKey += "-missing"
		}, "pod old does not hand over its items"},
		"because the new pod's key file is missing": {func(_ *testing.T, _, next *pods.Shard) {
			next.HandoverKey += "-missing"
		}, "reading the key of the handover"},
		"because the new pod has another key": {func(t *testing.T, _, next *pods.Shard) {
			pods.WriteFile(t, next.HandoverKey, strings.Repeat("another key", 3)[:32])
		}, "the items can't be handed over: the peer has another handover key"},
		"because that is off": {func(_ *testing.T, _, next *pods.Shard) {
			next.HandoverKey = ""
		}, "first start of this pod"},
		"because the file has no items (extstore)": {func(t *testing.T, old, _ *pods.Shard) {
			old.Annotate(agentwire.ArgumentsFile, old.Arguments("-o", "ext_path="+old.Dir+"/ext:64m"))
		}, "the handover from pod old failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next, _ := pods.NewPair(t)
			c.prepare(t, old, next)
			old.Run()
			pods.Fill(t, old.Address(), 1000)
			stop := make(chan struct{})
			memcacheds := pods.NewService(t, old.Address())
			visits := pods.Visit(memcacheds.Address(), stop)
			old.Signal(syscall.SIGTERM)
			next.Launch()
			wantCold(next, c.reason)
			memcacheds.Backend.Store(pods.Ref(next.Address()))
			if code := old.Exit(); code != 0 {
				t.Errorf("the old agent exited with code %d", code)
			}
			close(stop)
			if n := <-visits; n[1] != 0 {
				t.Errorf("%d of %d connections failed", n[1], n[0])
			}
			if !pods.Exists(old.Meta()) {
				t.Error("the old pod did not save its items")
			}
		})
	}
}

func TestFirstPodOfAShardStartsAtOnce(t *testing.T) {
	t.Parallel()
	_, next, _ := pods.NewPair(t)
	if start := next.Run().Start; start.Result != agentwire.StartCold || start.Reason != "no saved items: first start of this pod" {
		t.Errorf("start %+v", start)
	}
}

func TestHungServiceDelaysTheFirstStartOnly(t *testing.T) {
	t.Parallel()
	_, next, _ := pods.NewPair(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections and does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	next.Service = listener.Addr().String()
	next.Launch()
	wantCold(next, "no saved items: first start of this pod, and no other pod responded within 10s: ")
	pods.Fill(t, next.Address(), 10)
	next.StopContainer()
	pods.WantWarm(t, next.Run(), 10)
}

// The operator fills the shard.
func TestPodWithAReadinessHoldReceivesNothing(t *testing.T) {
	t.Parallel()
	old, next, _ := pods.NewPair(t)
	old.Run()
	pods.Fill(t, old.Address(), 100)
	delayReadiness(next, time.Now().Add(time.Hour))
	next.Launch()
	wantCold(next, "first start of this pod")
	wantReady(next, false)
}

// slowPair returns two pods of which the first is draining and the second receives many items.
func slowPair(t *testing.T, size int) (old, next *pods.Shard) {
	t.Helper()
	old, next, _ = pods.NewPair(t, "-m", "256")
	old.Run()
	pour(t, old.Address(), size)
	old.Signal(syscall.SIGTERM)
	next.Launch()
	next.WaitFor("the first items", func(status agentwire.Status) bool {
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
		old.Kill()
		wantCold(next, "the handover from pod old failed")
	})
	t.Run("at a second SIGTERM", func(t *testing.T) {
		t.Parallel()
		old, next := slowPair(t, manyItems)
		old.Signal(syscall.SIGTERM)
		if code := old.Exit(); code != 0 || !pods.Exists(old.Meta()) {
			t.Errorf("code %d, saved %t", code, pods.Exists(old.Meta()))
		}
		wantCold(next, "the handover from pod old failed")
	})
	t.Run("because its memcached does", func(t *testing.T) {
		t.Parallel()
		old, next := slowPair(t, manyItems)
		if err := syscall.Kill(old.Status().PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code := old.Exit(); code == 0 {
			t.Error("the old agent exited with code 0")
		}
		wantCold(next, "the handover from pod old failed")
	})
	t.Run("during the end", func(t *testing.T) {
		t.Parallel()
		old, next, _ := slowEnd(t)
		old.Kill()
		wantCold(next, "the handover from pod old failed")
	})
}

// slowEnd returns two pods of which the first has stopped its memcached, and waits for the
// second one's acknowledgement, which takes seconds to arrive.
func slowEnd(t *testing.T) (old, next *pods.Shard, link *slowLink) {
	t.Helper()
	old, next, _ = pods.NewPair(t, "-m", "256")
	link = newSlowLink(t, old)
	old.Run()
	pour(t, old.Address(), manyItems)
	old.Signal(syscall.SIGTERM)
	next.Launch()
	next.WaitFor("the first items", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseReceiving && status.Handover.Items > 0
	})
	link.slow.Store(true)
	old.WaitForPhase(agentwire.PhaseStopping)
	return old, next, link
}

// slowLink forwards connections to the handover port of a pod.
type slowLink struct {
	slow atomic.Bool
	// rate bounds what the source sends, in bytes a second; 0 is no bound.
	rate int64
}

var slowLinks atomic.Int32

func newSlowLink(t *testing.T, source *pods.Shard) *slowLink {
	t.Helper()
	l := &slowLink{}
	source.PodIP = fmt.Sprintf("127.77.8.%d", slowLinks.Add(1))
	port := strconv.Itoa(source.HandoverPort)
	listener, err := net.Listen("tcp", net.JoinHostPort(source.PodIP, port))
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
	launchThird := func(t *testing.T, next *pods.Shard) *pods.Shard {
		t.Helper()
		third := pods.NewShard(t)
		third.PodUID, third.HandoverKey, third.Service = "third", next.HandoverKey, next.Service
		third.Annotate(agentwire.ArgumentsFile, third.Arguments("-m", "256"))
		third.Launch()
		return third
	}
	wantTakenOver := func(t *testing.T, old, third *pods.Shard, size int) {
		t.Helper()
		wantHandedOver(t, third.WaitForPhase(agentwire.PhaseServing).Start, int64(size))
		if n := pods.Count(t, third.Address(), size); n != size {
			t.Errorf("the third pod serves %d of %d items", n, size)
		}
		if code := old.Exit(); code != 0 {
			t.Errorf("the old agent exited with code %d", code)
		}
	}
	t.Run("before the end", func(t *testing.T) {
		t.Parallel()
		old, next := slowPair(t, manyItems)
		third := launchThird(t, next)
		third.WaitForPhase(agentwire.PhaseReceiving)
		next.Kill()
		if status := old.Status(); status.Phase != agentwire.PhaseDraining || status.Items != manyItems {
			t.Errorf("the old pod: %+v", status)
		}
		wantTakenOver(t, old, third, manyItems)
	})
	t.Run("during the end", func(t *testing.T) {
		t.Parallel()
		old, next, link := slowEnd(t)
		next.Kill()
		link.slow.Store(false)
		status := old.WaitForPhase(agentwire.PhaseDraining)
		if n := pods.Count(t, old.Address(), manyItems); n != manyItems {
			t.Errorf("the old pod serves %d of %d items: %+v", n, manyItems, status)
		}
		wantTakenOver(t, old, launchThird(t, next), manyItems)
	})
}

// It has only a part of the items, which the next memcached must not serve.
func TestRestartedReceiverReceivesAllItems(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *pods.Shard){
		"after a SIGTERM": func(t *testing.T, next *pods.Shard) {
			next.Signal(syscall.SIGTERM)
			if code := next.Exit(); code != 0 || pods.Exists(next.Meta()) {
				t.Errorf("code %d, saved %t", code, pods.Exists(next.Meta()))
			}
		},
		"after an announced stop": func(t *testing.T, next *pods.Shard) {
			next.Announce("upgrade")
			next.Signal(syscall.SIGTERM)
			if code := next.Exit(); code != 0 || pods.Exists(next.Meta()) {
				t.Errorf("code %d, saved %t", code, pods.Exists(next.Meta()))
			}
		},
		"after a kill of its container": func(_ *testing.T, next *pods.Shard) { next.Kill() },
		"after memcached died": func(t *testing.T, next *pods.Shard) {
			if err := syscall.Kill(next.Status().PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next := slowPair(t, manyItems)
			stop(t, next)
			old.WaitForPhase(agentwire.PhaseDraining)
			if next.HasExited() {
				next.Launch()
			}
			wantHandedOver(t, next.WaitForPhase(agentwire.PhaseServing).Start, manyItems)
			if n := pods.Count(t, next.Address(), manyItems); n != manyItems {
				t.Errorf("%d of %d items were handed over", n, manyItems)
			}
			old.Exit()
		})
	}
}

func TestPodWithAKeyDrainsWithoutAReplacement(t *testing.T) {
	t.Parallel()
	old, _, _ := pods.NewPair(t)
	old.DrainTimeout = 2 * time.Second
	old.Run()
	pods.Fill(t, old.Address(), 1000)
	began := time.Now()
	old.Signal(syscall.SIGTERM)
	if code := old.Exit(); code != 0 || !pods.Exists(old.Meta()) {
		t.Errorf("code %d, saved %t", code, pods.Exists(old.Meta()))
	}
	if took := time.Since(began); took < old.DrainTimeout {
		t.Errorf("it exited after %s", took)
	}
}

func TestHandoverEndsInTime(t *testing.T) {
	t.Parallel()
	old, next, _ := pods.NewPair(t, "-m", "256")
	old.DrainTimeout = 5 * time.Second // the end has to begin at once, without a live pass
	old.Run()
	pour(t, old.Address(), manyItems)
	next.Launch()
	next.WaitForPhase(agentwire.PhaseReceiving)
	old.Signal(syscall.SIGTERM)
	wantHandedOver(t, next.WaitForPhase(agentwire.PhaseServing).Start, manyItems)
	if n := pods.Count(t, next.Address(), manyItems); n != manyItems {
		t.Errorf("%d of %d items were handed over", n, manyItems)
	}
	if code := old.Exit(); code != 0 {
		t.Errorf("the old agent exited with code %d", code)
	}
}

func TestRecentlyUsedItemsAreHandedOverWhenTimeIsShort(t *testing.T) {
	t.Parallel()
	old, next, _ := pods.NewPair(t, "-m", "256")
	newSlowLink(t, old).rate = 3 << 20
	old.DrainTimeout = 8 * time.Second
	old.Run()
	const cold, hot = 2400, 100
	store := func(name string, size int) map[string]entry {
		entries := map[string]entry{}
		for i := range size {
			entries[fmt.Sprintf("%s-%d", name, i)] = entry{strings.Repeat("x", 64<<10), 1, -1}
		}
		putItems(old.AsCache(), entries)
		return entries
	}
	store("cold", cold)
	time.Sleep(2100 * time.Millisecond) // memcached's clock has seconds
	recent := store("hot", hot)
	next.Launch()
	next.WaitForPhase(agentwire.PhaseReceiving)
	old.Signal(syscall.SIGTERM)
	start := next.WaitForPhase(agentwire.PhaseServing).Start
	t.Log(start.Reason)
	if start.Result != agentwire.StartHandedOver || start.ItemsBefore != cold+hot || start.Items >= cold {
		t.Errorf("start %+v, want a part of the %d items", start, cold+hot)
	}
	if got := getItems(next.AsCache(), names(recent)); len(got) != hot {
		t.Errorf("%d of the %d items that were used last were handed over", len(got), hot)
	}
	old.Exit()
}

// The pod is ready for the probe that waits, and does not wait for the next one.
func TestProbeReportsTheEndOfAHandoverAtOnce(t *testing.T) {
	t.Parallel()
	old, next := slowPair(t, manyItems)
	for {
		code, _, err := next.Get("/readyz")
		if err != nil {
			t.Fatal(err)
		}
		if code == http.StatusOK {
			break
		}
	}
	since := time.Since(next.Status().Start.At)
	t.Logf("ready %s after the end", since.Round(time.Millisecond))
	wantHandedOver(t, next.Status().Start, manyItems)
	old.Exit()
}

func TestAnnouncedChangesWaitForTheEndOfAHandover(t *testing.T) {
	t.Parallel()
	old, next := slowPair(t, manyItems)
	for _, s := range []*pods.Shard{old, next} {
		s.Annotate(agentwire.ArgumentsFile, s.Arguments("-m", "256", "-t", "2"))
		s.Annotate(agentwire.RestartFile, "now")
	}
	status := next.WaitFor("the restart", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseServing && status.Restart == "now"
	})
	pods.WantWarm(t, status, manyItems)
	if code := old.Exit(); code != 0 {
		t.Errorf("the old agent exited with code %d", code)
	}
	if n := pods.Count(t, next.Address(), manyItems); n != manyItems {
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
