package process

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

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
	const bound, others = 128, 32
	s := pods.NewShard(t)
	s.Run()
	for i := range 5 * bound {
		conn, err := net.Dial("tcp", s.AgentAddress())
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	if len(open) > bound+others {
		t.Errorf("the agent has %d open files", len(open))
	}
}

// memcached counts its own files among the connections: with 64 threads it does not start with 256 of them.
func TestClientsCanUseAllConnections(t *testing.T) {
	t.Parallel()
	const connections = 256
	for _, version := range pods.Tested {
		for _, threads := range []string{"1", "64"} {
			t.Run(version+" with "+threads+" threads", func(t *testing.T) {
				t.Parallel()
				s := pods.NewShard(t)
				s.Memcached = pods.MemcachedPath(version)
				s.Annotate(agentwire.ArgumentsFile, s.Arguments("-c", strconv.Itoa(connections), "-t", threads))
				s.Run()
				for i := range connections {
					conn, err := net.Dial("tcp", s.Address())
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					_ = conn.SetDeadline(time.Now().Add(pods.Patience))
					_, _ = io.WriteString(conn, "version\r\n")
					if answer, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(answer, "VERSION ") {
						t.Fatalf("connection %d: %q, %v", i+1, answer, err)
					}
				}
				wantProbes(s)
			})
		}
	}
}
