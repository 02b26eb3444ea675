package agent

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Clients may occupy all connections before the agent gets one.
func TestFirstResponseIsRetriedWhileThereAreTooManyConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var accepted atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if accepted.Add(1) <= 3 {
				_, _ = conn.Write([]byte("ERROR Too many open connections\r\n"))
			} else if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				_, _ = fmt.Fprintf(conn, "STAT pid %d\r\nSTAT curr_items 7\r\nEND\r\n", os.Getpid())
			}
			_ = conn.Close()
		}
	}()
	p := &process{client: newClient(protocol.At(listener.Addr().String())), pid: os.Getpid(), done: make(chan struct{})}
	responses := make(chan firstResponse, 1)
	awaitFirstResponse(p, responses)
	if r := <-responses; r.hangs || r.stats == nil || r.stats.Items != 7 {
		t.Errorf("after %d connections: %+v", accepted.Load(), r)
	}
}
