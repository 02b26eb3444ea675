package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// The SIGTERM is not announced. The replacement is another real agent.
func TestDeletedPodServesUntilItsReplacementDoes(t *testing.T) {
	t.Parallel()
	old, next := pods.NewShard(t), pods.NewShard(t)
	old.PodUID, next.PodUID = "old", "next"
	agents, memcacheds := pods.NewService(t, old.AgentAddress()), pods.NewService(t, old.Address())
	old.Service = agents.Address()
	old.Run()
	pods.Fill(t, old.Address(), 1000)

	stop := make(chan struct{})
	visits := pods.Visit(memcacheds.Address(), stop)
	old.Signal(syscall.SIGTERM)
	old.WaitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
	time.Sleep(2 * time.Second)
	if code, _, err := old.Get("/readyz"); err != nil || code != 200 {
		t.Errorf("while draining it is not ready: %d, %v", code, err)
	}
	if status := old.Status(); status.Phase != agentwire.PhaseDraining || status.Items != 1000 {
		t.Errorf("while draining: %+v", status)
	}

	next.Run()
	agents.Backend.Store(pods.Ref(next.AgentAddress()))
	memcacheds.Backend.Store(pods.Ref(next.Address()))
	moved := time.Now()
	if status := old.Exit(); status != 0 {
		t.Errorf("status %d", status)
	}
	if took := time.Since(moved); took < 900*time.Millisecond {
		t.Errorf("it exited %s after the other pod responded, want a second for the clients", took)
	}
	close(stop)
	if n := <-visits; n[1] != 0 || n[0] < 10 {
		t.Errorf("%d of %d connections failed", n[1], n[0])
	}
	if !pods.Exists(old.Meta()) {
		t.Error("it did not save")
	}
}

func TestDrainEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*testing.T, *pods.Shard)
		// drains: it exits when the drain timeout is over, and not before.
		drains bool
	}{
		"immediately without a Service": {func(*testing.T, *pods.Shard) {}, false},
		"after its timeout if only this pod is behind the Service": {func(_ *testing.T, s *pods.Shard) {
			s.Service = s.AgentAddress()
		}, true},
		"after its timeout if no pod is behind the Service": {func(t *testing.T, s *pods.Shard) {
			s.Service = fmt.Sprintf("127.0.0.1:%d", pods.FreePort(t))
		}, true},
		"after its timeout if the other pod is draining too": {func(t *testing.T, s *pods.Shard) {
			other := pods.NewShard(t)
			other.PodUID, other.Service = "other", other.AgentAddress()
			other.Run()
			other.Signal(syscall.SIGTERM)
			other.WaitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
			s.Service = other.AgentAddress()
		}, true},
		"immediately if the name does not exist": {func(t *testing.T, s *pods.Shard) {
			s.Service = "cache-0:11212"
			useResolver(s, nameServer(t, nxDomain, nxDomain))
		}, false},
		"immediately if it does not exist and names outside of the cluster are refused": {func(t *testing.T, s *pods.Shard) {
			s.Service = "cache-0.ns.svc:11212"
			useResolver(s, nameServer(t, nxDomain, refused))
		}, false},
		"after its timeout if the name server fails": {func(t *testing.T, s *pods.Shard) {
			s.Service = "cache-0:11212"
			useResolver(s, nameServer(t, serverFailure, serverFailure))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			if c.drains {
				s.DrainTimeout = 2 * time.Second
			}
			c.prepare(t, s)
			s.Run()
			started := time.Now()
			s.Signal(syscall.SIGTERM)
			if status := s.Exit(); status != 0 {
				t.Errorf("status %d", status)
			}
			if took := time.Since(started); c.drains && took < s.DrainTimeout {
				t.Errorf("it exited after %s, before the end of the drain of %s", took, s.DrainTimeout)
			}
			if !pods.Exists(s.Meta()) {
				t.Error("it did not save")
			}
		})
	}
}

func TestSecondSIGTERMEndsADrain(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Service = s.AgentAddress()
	s.Run()
	s.Signal(syscall.SIGTERM)
	s.WaitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
	s.Signal(syscall.SIGTERM)
	if status := s.Exit(); status != 0 || !pods.Exists(s.Meta()) {
		t.Errorf("status %d, saved %v", status, pods.Exists(s.Meta()))
	}
}

// The token stays in the annotation after the stop that it announced. It must not
// announce the next one.
func TestAnnouncementIsForOneStop(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Service = s.AgentAddress()
	s.Run()
	s.Announce("upgrade-1")
	s.Signal(syscall.SIGTERM)
	s.Exit()
	if status := s.Run(); status.AnnouncedStop != "" {
		t.Errorf("the consumed token is announced again: %q", status.AnnouncedStop)
	}
	s.Signal(syscall.SIGTERM)
	s.WaitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
	s.Announce("upgrade-2")
	s.Signal(syscall.SIGTERM)
	if status := s.Exit(); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestAnnouncementCanBeWithdrawn(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Service = s.AgentAddress()
	s.Run()
	s.Announce("upgrade")
	s.Announce("")
	s.Signal(syscall.SIGTERM)
	s.WaitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
}

// resolver gives the agent a name server of its own.
func useResolver(s *pods.Shard, address string) {
	s.T.Helper()
	file := filepath.Join(s.Dir, "resolv.conf")
	pods.WriteFile(s.T, file, "nameserver "+address+"\nsearch ns.svc.cluster.local svc.cluster.local\noptions ndots:5 timeout:1 attempts:1\n")
	contain(s, "mount --bind "+file+" /etc/resolv.conf")
}

// The outcomes of DNS that matter (RFC 1035, 4.1.1).
const (
	serverFailure = 2
	nxDomain      = 3
	refused       = 5
)

var nameServers atomic.Int32

// nameServer responds to queries for cluster names with one outcome, and to all other
// queries with another. It needs the DNS port, so each has its own address.
func nameServer(t *testing.T, inside, outside uint16) string {
	t.Helper()
	address := fmt.Sprintf("127.77.7.%d", nameServers.Add(1))
	conn, err := net.ListenPacket("udp", address+":53")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		packet := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			if n < 12 {
				continue
			}
			// Return the question with the flags of a response, and no records.
			outcome := outside
			if bytes.Contains(packet[:n], []byte("\x07cluster\x05local\x00")) {
				outcome = inside
			}
			flags := binary.BigEndian.Uint16(packet[2:]) | 0x8080 | outcome
			binary.BigEndian.PutUint16(packet[2:], flags)
			end := 12
			for end < n && packet[end] != 0 {
				end += int(packet[end]) + 1
			}
			end = min(end+5, n)
			copy(packet[6:12], make([]byte, 6))
			_, _ = conn.WriteTo(packet[:end], from)
		}
	}()
	return address
}
