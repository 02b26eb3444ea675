package process

import (
	"fmt"
	"net"
	"net/http"
	"os"
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
