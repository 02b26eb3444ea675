package process

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// wantProbes checks that the kubelet's probes succeed.
func wantProbes(t *testing.T, s *shard) {
	t.Helper()
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body, err := s.get(path); err != nil || code != http.StatusOK {
			t.Errorf("%s: %d %s, %v", path, code, body, err)
		}
	}
}

// Every pod of a cluster without network policies can connect to the agent. Its memory is that
// of the container, and a container without memory is killed with all items.
func TestIdleConnectionsToTheAgentAreBounded(t *testing.T) {
	t.Parallel()
	const bound, others = 128, 32
	s := newShard(t)
	s.run()
	for i := range 5 * bound {
		conn, err := net.Dial("tcp", s.agentAddress())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 { // half of a request
			_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\n", agentwire.StatusPath)
		}
		if i%bound == 0 {
			wantProbes(t, s)
		}
	}
	wantProbes(t, s)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if len(open) > bound+others {
		t.Errorf("the agent has %d open files", len(open))
	}
}

// The status is always complete except for statistics, which at most a few requests wait for.
func TestProbesSucceedWhileManyClientsReadTheStatus(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if status, err := s.fetchStatus(); err != nil || status.Phase != agentwire.PhaseServing || status.PodUID != s.podUID {
					t.Errorf("/status: %+v, %v", status, err)
					return
				}
			}
		})
	}
	for range 20 {
		wantProbes(t, s)
	}
	close(stop)
	clients.Wait()
}
