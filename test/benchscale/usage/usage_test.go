package usage

import (
	"math"
	"os"
	"testing"
	"time"
)

func TestTheProcessorTimeOfAProcessWhoseNameHoldsAnything(t *testing.T) {
	const stat = "4711 (a) b (c) S 17 4711 4711 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 12 0 1000 1 2 3\n"
	if got, err := parseCPU(stat); err != nil || got != 3*time.Second {
		t.Errorf("%s, %v; want 3s", got, err)
	}
	if _, err := parseCPU("4711 (x) S 1"); err == nil {
		t.Error("a line without times is read")
	}
}

func TestTheMemoryOfAProcess(t *testing.T) {
	const status = "Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t   40 kB\nVmRSS:\t   30 kB\nRssAnon:\t 5 kB\n"
	if got, err := parseMemory(status); err != nil || got != (Memory{Now: 30 << 10, Peak: 40 << 10}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseMemory("Name:\tzombie\n"); err == nil {
		t.Error("a process that has none has memory")
	}
}

func TestIdleTimeIsNotBusy(t *testing.T) {
	got, err := parseBusy("cpu  100 20 30 5000 600 1 2 7 90 0\ncpu0 1 2 3\n")
	if err != nil || got != 1600*time.Millisecond {
		t.Errorf("%s, %v; want 1.6s", got, err)
	}
}

func TestThisProcessAndThisMachineAreRead(t *testing.T) {
	if _, err := CPU(os.Getpid()); err != nil {
		t.Error(err)
	}
	if m, err := MemoryOf(os.Getpid()); err != nil || m.Now == 0 || m.Peak < m.Now {
		t.Errorf("%+v, %v", m, err)
	}
	if busy, err := Busy(); err != nil || busy == 0 {
		t.Errorf("%s, %v", busy, err)
	}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestTheServerIsTheBottleneckWhereTheClientWaitsOrTheServerHasTheProcessors(t *testing.T) {
	second := func(i int, machine, server time.Duration, others ...time.Duration) Slice {
		from := noon.Add(time.Duration(i) * time.Second)
		return Slice{From: from, Until: from.Add(time.Second), Machine: machine, Server: server, Others: others}
	}
	const s, ms = time.Second, time.Millisecond
	slices := []Slice{
		second(0, 2*s, 1200*ms, 300*ms, 200*ms),     // full, the server's
		second(1, 1900*ms, 300*ms, 100*ms, 1500*ms), // full, another's
		second(2, 1000*ms, 800*ms, 100*ms),          // not full
		second(3, 2*s, 1200*ms, 300*ms),             // full, the server's, and the client waits
		second(4, 2*s, 500*ms, 300*ms, 100*ms),      // full, of somebody who is not known
	}
	waits := map[int]time.Duration{1: 250 * ms, 2: 500 * ms, 3: s}
	got := BottleneckOf(slices, 2, func(from, _ time.Time) time.Duration { return waits[int(from.Sub(noon)/s)] })
	want := Bottleneck{Waiting: 1.75 / 5, Full: 2.0 / 5, Either: 2.75 / 5}
	if math.Abs(got.Waiting-want.Waiting)+math.Abs(got.Full-want.Full)+math.Abs(got.Either-want.Either) > 1e-9 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := BottleneckOf(nil, 2, nil); got != (Bottleneck{}) {
		t.Errorf("of no time %+v", got)
	}
}
