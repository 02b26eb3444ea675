package usage

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
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
	cat := exec.Command("cat", "-", "/dev/null")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cat.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = cat.Wait()
	}()
	// The kernel gives a process its name a moment after Start returns.
	if _, err := io.Copy(in, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if pid, err := Child("cat"); err != nil || pid != cat.Process.Pid {
		t.Errorf("process %d, %v; want %d", pid, err, cat.Process.Pid)
	}
	if pid, err := ChildOf(os.Getpid()); err != nil || pid != cat.Process.Pid {
		t.Errorf("process %d, %v; want %d", pid, err, cat.Process.Pid)
	}
	if pids, err := Of("/dev/null"); err != nil || !slices.Contains(pids, cat.Process.Pid) {
		t.Errorf("processes %d, %v; want %d", pids, err, cat.Process.Pid)
	}
	if pid, err := Child("init"); err == nil {
		t.Errorf("process %d is not this one's child", pid)
	}
}
