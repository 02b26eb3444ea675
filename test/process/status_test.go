package process

import (
	"debug/elf"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

func TestStatusReportsTheShard(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.memcached = memcachedPath(version)
			s.annotate(agentwire.RestartFile, "before the start")
			before := time.Now()
			first := s.run()
			if first.Start.At.Before(before) || first.Start.At.After(time.Now()) {
				t.Errorf("started at %s", first.Start.At)
			}
			fill(t, s.address(), 50)
			s.announce("token")
			got := s.status()
			want := agentwire.Status{
				Phase: agentwire.PhaseServing, PodUID: s.podUID, AgentVersion: "1.2.3-test", Version: version, PID: got.PID,
				Arguments:     []string{"-p", strconv.Itoa(s.port), "-U", "0", "-m", "64", "-c", "1024"},
				AnnouncedStop: "token", Restart: "before the start",
				Start: agentwire.Start{Result: agentwire.StartCold, Reason: "no saved items: first start of this pod", At: got.Start.At},
				Items: 50, Bytes: got.Bytes, MaxBytes: 64 << 20, CurrConnections: got.CurrConnections, UptimeSeconds: got.UptimeSeconds,
			}
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if got.PID == 0 || got.Bytes < 50*50 || got.CurrConnections < 1 || got.UptimeSeconds < 1 {
				t.Errorf("unexpected statistics: %+v", got)
			}
			for _, path := range []string{"/healthz", "/readyz"} {
				if code, body, err := s.get(path); err != nil || code != http.StatusOK || string(body) != "ok\n" {
					t.Errorf("%s: %d %s, %v", path, code, body, err)
				}
			}
			// The restart was requested before this container started.
			time.Sleep(1500 * time.Millisecond)
			if later := s.status(); later.PID != got.PID {
				t.Error("memcached was restarted for nothing")
			}
		})
	}
}

// Otherwise a probe that is slightly early would delay the shard by a whole period.
func TestReadinessWaitsForAStart(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	s.announce("now")
	earlyInSecond()
	s.signal(syscall.SIGTERM)
	s.exit()
	// In the last half of the second of the stop: the start waits for the next one.
	time.Sleep(time.Until(time.Unix(stopSecond(t, s.meta()), int64(500*time.Millisecond))))
	s.launch()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		code, _, err := s.get("/readyz")
		if err != nil {
			continue // the agent does not listen yet
		}
		if code != http.StatusOK {
			t.Errorf("the first response is %d", code)
		}
		return
	}
	t.Error("no response")
}

// Clients may occupy all connections; the agent has kept its own.
func TestMemcachedWithoutFreeConnectionsIsReady(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.annotate(agentwire.ArgumentsFile, s.arguments("-c", "64"))
	s.run()
	s.status()
	for range 100 {
		conn, err := net.Dial("tcp", s.address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if err := greet(s.address()); err == nil {
		t.Fatal("there is room for one more")
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body, err := s.get(path); err != nil || code != http.StatusOK {
			t.Errorf("%s: %d %s, %v", path, code, body, err)
		}
	}
	if status := s.status(); status.CurrConnections < 20 {
		t.Errorf("no statistics: %+v", status)
	}
	s.stopContainer()
	if !exists(s.meta()) {
		t.Error("it did not save")
	}
}

// The agent shares the pod's memory with the items.
func TestAgentIsSmallAndStatic(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(agentPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", info.Size())
	if info.Size() > 8_000_000 {
		t.Errorf("the agent has %d bytes, more than 8 MB", info.Size())
	}
	program, err := elf.Open(agentPath)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the agent is not static")
		}
	}

	s := newShard(t)
	s.run()
	for i := range 300 {
		for _, path := range []string{"/status", "/healthz", "/readyz"} {
			if _, _, err := s.get(path); err != nil {
				t.Fatal(err)
			}
		}
		if i == 100 {
			s.annotate(agentwire.RestartFile, "once")
		}
	}
	resident := memory(t, s.command.Process.Pid, "VmRSS")
	t.Logf("%d KiB resident, at most %d", resident, memory(t, s.command.Process.Pid, "VmHWM"))
	if resident > 12<<10 {
		t.Errorf("%d KiB resident, more than 12 MiB", resident)
	}
}

// memory reads a size in KiB.
func memory(t *testing.T, pid int, name string) int {
	t.Helper()
	kib, err := strconv.Atoi(procStatus(t, pid, name))
	if err != nil {
		t.Fatal(err)
	}
	return kib
}

// procStatus reads the first word of a line of proc_pid_status(5).
func procStatus(t *testing.T, pid int, name string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n"+name+":")
	if !ok {
		t.Fatalf("no %s of process %d", name, pid)
	}
	return strings.Fields(rest)[0]
}
