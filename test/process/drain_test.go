package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// service stands for a Service: one address that forwards each new connection to the
// current backend.
type service struct {
	listener net.Listener
	backend  atomic.Pointer[string]
}

func newService(t *testing.T, backend string) *service {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &service{listener: listener}
	s.backend.Store(&backend)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go s.forward(client)
		}
	}()
	return s
}

func (s *service) address() string { return s.listener.Addr().String() }

func (s *service) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", *s.backend.Load())
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = server.(*net.TCPConn).ReadFrom(client)
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	_, _ = client.(*net.TCPConn).ReadFrom(server)
}

// visit opens a new connection to a memcached each 20 ms and counts all and failed
// ones, until stop is closed.
func visit(address string, stop <-chan struct{}) <-chan [2]int {
	result := make(chan [2]int, 1)
	go func() {
		var tried, failed int
		for {
			select {
			case <-stop:
				result <- [2]int{tried, failed}
				return
			case <-time.After(20 * time.Millisecond):
			}
			tried++
			if err := greet(address); err != nil {
				failed++
			}
		}
	}()
	return result
}

func greet(address string) error {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte("version\r\n")); err != nil {
		return err
	}
	response := make([]byte, 100)
	n, err := conn.Read(response)
	if err == nil && !strings.HasPrefix(string(response[:n]), "VERSION ") {
		err = fmt.Errorf("unexpected response %q", response[:n])
	}
	return err
}

// The SIGTERM is not announced. The replacement is another real agent.
func TestDeletedPodServesUntilItsReplacementDoes(t *testing.T) {
	t.Parallel()
	old, next := newShard(t), newShard(t)
	old.podUID, next.podUID = "old", "next"
	agents, memcacheds := newService(t, old.agentAddress()), newService(t, old.address())
	old.service = agents.address()
	old.run()
	fill(t, old.address(), 1000)

	stop := make(chan struct{})
	visits := visit(memcacheds.address(), stop)
	old.signal(syscall.SIGTERM)
	old.waitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
	time.Sleep(2 * time.Second)
	if code, _, err := old.get("/readyz"); err != nil || code != 200 {
		t.Errorf("while draining it is not ready: %d, %v", code, err)
	}
	if status := old.status(); status.Phase != agentwire.PhaseDraining || status.Items != 1000 {
		t.Errorf("while draining: %+v", status)
	}

	next.run()
	agents.backend.Store(ref(next.agentAddress()))
	memcacheds.backend.Store(ref(next.address()))
	moved := time.Now()
	if status := old.exitWithoutDrain(); status != 0 {
		t.Errorf("status %d", status)
	}
	if took := time.Since(moved); took < 900*time.Millisecond {
		t.Errorf("it exited %s after the other pod responded, want a second for the clients", took)
	}
	close(stop)
	if n := <-visits; n[1] != 0 || n[0] < 10 {
		t.Errorf("%d of %d connections failed", n[1], n[0])
	}
	if !exists(old.meta()) {
		t.Error("it did not save")
	}
}

func ref(text string) *string { return &text }

func TestDrainEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*testing.T, *shard)
		// drains: it exits when the drain timeout is over, and not before.
		drains bool
	}{
		"immediately without a Service": {func(*testing.T, *shard) {}, false},
		"after its timeout if only this pod is behind the Service": {func(_ *testing.T, s *shard) {
			s.service = s.agentAddress()
		}, true},
		"after its timeout if no pod is behind the Service": {func(t *testing.T, s *shard) {
			s.service = fmt.Sprintf("127.0.0.1:%d", freePort(t))
		}, true},
		"after its timeout if the other pod is draining too": {func(t *testing.T, s *shard) {
			other := newShard(t)
			other.podUID, other.service = "other", other.agentAddress()
			other.run()
			other.signal(syscall.SIGTERM)
			other.waitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
			s.service = other.agentAddress()
		}, true},
		"immediately if the name does not exist": {func(t *testing.T, s *shard) {
			s.service = "cache-0:11212"
			s.resolver(nameServer(t, nxDomain, nxDomain))
		}, false},
		"immediately if it does not exist and names outside of the cluster are refused": {func(t *testing.T, s *shard) {
			s.service = "cache-0.ns.svc:11212"
			s.resolver(nameServer(t, nxDomain, refused))
		}, false},
		"after its timeout if the name server fails": {func(t *testing.T, s *shard) {
			s.service = "cache-0:11212"
			s.resolver(nameServer(t, serverFailure, serverFailure))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			if c.drains {
				s.drainTimeout = 2 * time.Second
			}
			c.prepare(t, s)
			s.run()
			started := time.Now()
			s.signal(syscall.SIGTERM)
			exit := s.exitWithoutDrain
			if c.drains {
				exit = s.exit
			}
			if status := exit(); status != 0 {
				t.Errorf("status %d", status)
			}
			if took := time.Since(started); c.drains && took < s.drainTimeout {
				t.Errorf("it exited after %s, before the end of the drain of %s", took, s.drainTimeout)
			}
			if !exists(s.meta()) {
				t.Error("it did not save")
			}
		})
	}
}

func TestSecondSIGTERMEndsADrain(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.service = s.agentAddress()
	s.run()
	s.signal(syscall.SIGTERM)
	s.waitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
	s.signal(syscall.SIGTERM)
	if status := s.exitWithoutDrain(); status != 0 || !exists(s.meta()) {
		t.Errorf("status %d, saved %v", status, exists(s.meta()))
	}
}

// The token stays in the annotation after the stop that it announced. It must not
// announce the next one.
func TestAnnouncementIsForOneStop(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.service = s.agentAddress()
	s.run()
	s.announce("upgrade-1")
	s.signal(syscall.SIGTERM)
	s.exitWithoutDrain()
	if status := s.run(); status.AnnouncedStop != "" {
		t.Errorf("the consumed token is announced again: %q", status.AnnouncedStop)
	}
	s.signal(syscall.SIGTERM)
	s.waitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
	s.announce("upgrade-2")
	s.signal(syscall.SIGTERM)
	if status := s.exitWithoutDrain(); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestAnnouncementCanBeWithdrawn(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.service = s.agentAddress()
	s.run()
	s.announce("upgrade")
	s.announce("")
	s.signal(syscall.SIGTERM)
	s.waitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
}

// resolver gives the agent a name server of its own.
func (s *shard) resolver(address string) {
	s.t.Helper()
	file := filepath.Join(s.dir, "resolv.conf")
	writeFile(s.t, file, "nameserver "+address+"\nsearch ns.svc.cluster.local svc.cluster.local\noptions ndots:5 timeout:1 attempts:1\n")
	s.contain("mount --bind " + file + " /etc/resolv.conf")
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
