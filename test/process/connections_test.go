package process

import (
	"fmt"
	"net"
	"os"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// wantProbes checks that the kubelet's probes succeed: its next one, if a busy machine is too slow for one.
func wantProbes(s *pods.Shard) {
	s.T.Helper()
	s.WaitForProbe("/healthz")
	s.WaitForProbe("/readyz")
}

// Every pod of a cluster without network policies can connect to the agent. Its memory is that
// of the container, and a container without memory is killed with all items.
func TestIdleConnectionsToTheAgentAreBounded(t *testing.T) {
	t.Parallel()
	const bound, scrapes, others = 128, 16, 32
	s := pods.NewShard(t)
	s.Run()
	for i := range 5 * bound {
		address := s.AgentAddress()
		if i%3 == 0 {
			address = s.MetricsAddress()
		}
		conn, err := net.Dial("tcp", address)
		pods.Must(t, err)
		defer conn.Close()
		if i%2 == 0 { // half of a request
			_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\n", agentwire.StatusPath)
		}
		if i%bound == 0 {
			wantProbes(s)
		}
	}
	wantProbes(s)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Command.Process.Pid))
	pods.Must(t, err)
	if len(open) > bound+scrapes+others {
		t.Errorf("the agent has %d open files", len(open))
	}
	pods.FetchMetrics(t, "http://"+s.MetricsAddress()+"/metrics")
}
