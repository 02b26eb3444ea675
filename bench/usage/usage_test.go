package usage

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func TestProcessAndMachineAreMeasured(t *testing.T) {
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	after := before
	for n := 0; after-before < 20*time.Millisecond && n < 100_000; n++ { // each call uses some
		if after, err = CPU(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if after-before < 20*time.Millisecond {
		t.Errorf("this process used %s, and after many calls %s", before, after)
	}
	if m, err := MemoryOf(os.Getpid()); err != nil || m.Now == 0 || m.Peak < m.Now {
		t.Errorf("%+v, %v", m, err)
	}
	if own, err := Own(os.Getpid()); err != nil || own == 0 {
		t.Errorf("%d bytes, %v", own, err)
	}
	if busy, err := Busy(); err != nil || busy < after-before {
		t.Errorf("the machine used %s, %v; this process %s", busy, err, after)
	}
	if _, err := MemoryOf(1 << 30); err == nil {
		t.Error("a process that does not exist: no error")
	}
}

func TestChildIsFoundByItsProgram(t *testing.T) {
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait() // it was killed
	}()
	if pid, err := Child("sleep"); err != nil || pid != sleep.Process.Pid {
		t.Errorf("process %d, %v; want %d", pid, err, sleep.Process.Pid)
	}
	if pid, err := ChildOf(os.Getpid()); err != nil || pid != sleep.Process.Pid {
		t.Errorf("process %d, %v; want %d", pid, err, sleep.Process.Pid)
	}
	if pids, err := Of("600"); err != nil || !slices.Contains(pids, sleep.Process.Pid) {
		t.Errorf("processes %d, %v; want %d", pids, err, sleep.Process.Pid)
	}
	if pid, err := Child("init"); err == nil {
		t.Errorf("process %d is not this one's child", pid)
	}
}
