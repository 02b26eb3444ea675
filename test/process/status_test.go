package process

import (
	"debug/elf"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func TestStatusReportsTheShard(t *testing.T) {
	pods.WithEach(t, pods.Tested, func(t *testing.T, version string) {
		s := pods.NewShard(t)
		s.Memcached = pods.MemcachedPath(version)
		s.Annotate(agentwire.RestartFile, "before the start")
		before := time.Now()
		first := s.Run()
		if first.Start.At.Before(before) || first.Start.At.After(time.Now()) {
			t.Errorf("started at %s", first.Start.At)
		}
		pods.Fill(t, s.Address(), 50)
		// memcached counts a get that touches and hits as a touch.
		pods.Talk(t, s.Address(), "mg item-1 v\r\nmg nothing v\r\nmg item-1 T0\r\nmg nothing T0\r\n")
		s.Announce("token")
		got := s.Status()
		want := agentwire.Status{
			Phase: agentwire.PhaseServing, PodUID: s.PodUID, AgentVersion: "1.2.3-test", Version: version, PID: got.PID,
			Arguments:     []string{"-p", strconv.Itoa(s.Port), "-U", "0", "-m", "64", "-c", "1024"},
			AnnouncedStop: "token", Restart: "before the start",
			Start: agentwire.Start{Result: agentwire.StartCold, Reason: "no saved items: first start of this pod", At: got.Start.At},
			Items: 50, Bytes: got.Bytes, MaxBytes: 64 << 20, CurrConnections: got.CurrConnections, UptimeSeconds: got.UptimeSeconds,
			Gets: 4, Hits: 2, RecentGets: 4, RecentHits: 2,
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if got.PID == 0 || got.Bytes < 50*50 || got.CurrConnections < 1 || got.UptimeSeconds < 1 {
			t.Errorf("unexpected statistics: %+v", got)
		}
		wantProbes(s)
		// The restart was requested before this container started.
		s.Announce("a stop")
		s.Announce("")
		s.Announce("another stop") // the agent has handled what it handles without an announced stop
		if later := s.Status(); later.PID != got.PID {
			t.Error("memcached was restarted for nothing")
		}
	})
}

// A start and a restart in place are gated: memcached begins when the test lets it. Real items
// are reloaded in a second, which is too short to be seen for certain.
func TestReadinessWaitsForAStartAndItsItems(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Run()
	pods.Fill(t, s.Address(), 1000)
	s.StopContainer()
	gate, real := filepath.Join(s.Dir, "gate"), s.Memcached
	s.Memcached = filepath.Join(s.Dir, "gated")
	writeExecutable(t, s.Memcached, fmt.Sprintf(`#!/bin/sh
test "$1" = -V || while test -e %s; do sleep 0.02; done
exec %s "$@"`, gate, real))

	for _, c := range []struct {
		phase agentwire.Phase
		begin func()
	}{
		{agentwire.PhaseStarting, s.Launch},
		{agentwire.PhaseRestarting, func() { s.Annotate(agentwire.RestartFile, "once") }},
	} {
		phase := c.phase
		pods.WriteFile(t, gate, "")
		c.begin()
		s.WaitFor("the start", func(status agentwire.Status) bool { return status.Phase == phase && status.PID != 0 })
		for range 3 {
			began := time.Now()
			code, body, err := s.Get("/readyz")
			if err != nil || code != http.StatusServiceUnavailable {
				t.Errorf("%s: /readyz: %d, %v; want 503", phase, code, err)
			}
			pods.WantContains(t, "/readyz", string(body), "phase "+string(phase))
			// Otherwise a probe that is slightly early would delay the shard by a whole period.
			if took := time.Since(began); took < 700*time.Millisecond {
				t.Errorf("%s: /readyz did not wait for the start: it took %s", phase, took)
			}
			if code, _, err := s.Get("/healthz"); err != nil || code != http.StatusOK {
				t.Errorf("%s: /healthz: %d, %v", phase, code, err)
			}
		}
		pods.Must(t, os.Remove(gate))
		s.WaitForProbe("/readyz")
		pods.WantWarm(t, s.Status(), 1000)
		if n := pods.Count(t, s.Address(), 1000); n != 1000 {
			t.Errorf("%s: %d of 1000 items when it became ready", phase, n)
		}
	}
}

// If the agent closed its connection after a query without an answer, clients would have it next.
func TestAgentKeepsItsConnectionWhenAnAnswerIsLate(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Annotate(agentwire.ArgumentsFile, s.Arguments("-c", "64"))
	pid := s.Run().PID
	done := make(chan struct{})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() { occupy(s.Address(), done) })
	}
	defer clients.Wait()
	defer close(done)
	if !pods.Eventually(func() bool { return pods.Greet(s.Address()) != nil }) {
		t.Fatal("the clients don't occupy the connections")
	}
	pods.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	if !pods.Eventually(func() bool { return len(childrenOf(s.Command.Process.Pid, "T")) > 0 }) {
		t.Fatal("memcached does not stop")
	}
	if up := pods.FetchMetrics(t, "http://"+s.MetricsAddress()+"/metrics").Values["memcached_up"]; up != 0 {
		t.Errorf("memcached_up is %v while memcached is stopped", up)
	}
	pods.Must(t, syscall.Kill(pid, syscall.SIGCONT))
	s.Metrics(t, "") // the agent has a connection
	wantProbes(s)
	if err := pods.Greet(s.Address()); err == nil {
		t.Error("the clients don't occupy the connections")
	}
}

// occupy takes each connection that is free, until done is closed.
func occupy(address string, done <-chan struct{}) {
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-done:
			return
		case <-pace.C:
		}
		conn, err := net.DialTimeout("tcp", address, pods.Patience)
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(pods.Patience))
		response := make([]byte, 1)
		_, _ = conn.Write([]byte("version\r\n"))
		if _, err := conn.Read(response); err == nil && response[0] == 'V' {
			defer conn.Close()
		} else {
			_ = conn.Close()
		}
	}
}

// The agent shares the pod's memory with the items.
func TestAgentIsSmallAndStatic(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(pods.AgentPath)
	pods.Must(t, err)
	t.Logf("%d bytes", info.Size())
	if info.Size() > 8_000_000 {
		t.Errorf("the agent has %d bytes, more than 8 MB", info.Size())
	}
	program, err := elf.Open(pods.AgentPath)
	pods.Must(t, err)
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the agent is not static")
		}
	}

	s := pods.NewShard(t)
	s.Run()
	for i := range 300 {
		for _, path := range []string{"/status", "/healthz", "/readyz"} {
			_, _, err := s.Get(path)
			pods.Must(t, err)
		}
		if i == 100 {
			s.Annotate(agentwire.RestartFile, "once")
		}
	}
	// Without transparent huge pages of the heap, which Debian uses: with them, it is up to 14 MiB.
	if pid := s.Command.Process.Pid; !pods.Eventually(func() bool { return memoryOf(t, pid, "VmRSS") <= 12<<20 }) {
		t.Errorf("%.1f MiB resident, more than 12 MiB", mebibytes(memoryOf(t, pid, "VmRSS")))
	}
}
