package usage

import (
	"math"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestProcessAndMachineAreMeasured(t *testing.T) {
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
	}
	after, err := CPU(os.Getpid())
	if err != nil || after <= before || after > before+10*time.Second {
		t.Errorf("%s, and after a busy loop %s, %v", before, after, err)
	}
	if m, err := MemoryOf(os.Getpid()); err != nil || m.Now == 0 || m.Peak < m.Now {
		t.Errorf("%+v, %v", m, err)
	}
	if busy, err := Busy(); err != nil || busy < after {
		t.Errorf("the machine used %s, %v; this process %s", busy, err, after)
	}
	if total, err := Total(); err != nil || total < 1<<28 {
		t.Errorf("%d bytes of memory, %v", total, err)
	}
	if _, err := MemoryOf(1 << 30); err == nil {
		t.Error("a process that does not exist: no error")
	}
}

func TestChildIsFoundByItsProgram(t *testing.T) {
	sleep := exec.CommandContext(t.Context(), "sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	if pid, err := Child("sleep"); err != nil || pid != sleep.Process.Pid {
		t.Errorf("process %d, %v; want %d", pid, err, sleep.Process.Pid)
	}
	if pid, err := Child("init"); err == nil {
		t.Errorf("process %d is not this one's child", pid)
	}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestServerIsTheBottleneckWhenTheClientWaitsOrTheServerUsesTheProcessors(t *testing.T) {
	second := func(i int, machine, server time.Duration, others ...time.Duration) Slice {
		from := noon.Add(time.Duration(i) * time.Second)
		return Slice{From: from, Until: from.Add(time.Second), Machine: machine, Server: server, Others: others}
	}
	const s, ms = time.Second, time.Millisecond
	slices := []Slice{
		second(0, 2*s, 1200*ms, 300*ms, 200*ms),     // full, the server's
		second(1, 1900*ms, 300*ms, 100*ms, 1500*ms), // full, another program's
		second(2, 1000*ms, 800*ms, 100*ms),          // not full
		second(3, 2*s, 1200*ms, 300*ms),             // full, the server's, and the client waits
		second(4, 2*s, 500*ms, 300*ms, 100*ms),      // full, of an unknown program
	}
	waits := map[int]time.Duration{1: 250 * ms, 2: 500 * ms, 3: s}
	got := BottleneckOf(slices, 2, func(from, _ time.Time) time.Duration { return waits[int(from.Sub(noon)/s)] })
	want := Bottleneck{Waiting: 1.75 / 5, Full: 2.0 / 5, Either: 2.75 / 5}
	if math.Abs(got.Waiting-want.Waiting)+math.Abs(got.Full-want.Full)+math.Abs(got.Either-want.Either) > 1e-9 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := BottleneckOf(nil, 2, nil); got != (Bottleneck{}) {
		t.Errorf("without slices: %+v", got)
	}
}
