package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/connlimit"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Clients with ElastiCache's auto discovery read the list of the shards in one of two ways, and
// the agent serves both: most of them request it from an endpoint. AWS's client for Java does so
// only once, and then reads an item of each shard, since memcached itself has no such command.
const (
	// discoveryConnections is how many clients of the endpoint stay connected, at about 10 KiB each.
	discoveryConnections = 128
	// discoveryIdle is longer than the minute between two requests of most clients.
	discoveryIdle = 5 * time.Minute
	// maxDiscoveryRequest in bytes is the size of the longest line that is read.
	maxDiscoveryRequest = 512
	// discoveryInterval is how often the item is stored, and discoveryTTL, in seconds, how long it
	// lives after the list was withdrawn.
	discoveryInterval = 15 * time.Second
	discoveryTTL      = 60
)

// discovery knows the list of the shards: the text of the pod's annotation, which is empty or
// what clients expect as the value, a line with the version and one with the servers.
type discovery struct {
	path   string
	states *atomic.Pointer[state]
	log    *slog.Logger
}

func newDiscovery(c config, states *atomic.Pointer[state], log *slog.Logger) discovery {
	return discovery{path: filepath.Join(c.podInfoDir, wire.DiscoveryFile), states: states, log: log}
}

func (d discovery) list() ([]byte, error) {
	list, err := os.ReadFile(d.path)
	if err != nil {
		return nil, fmt.Errorf("reading the list of the shards: %w", err)
	}
	return list, nil
}

// serve returns when it can't listen, which the agent survives.
func (d discovery) serve(address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		d.log.Error("This pod doesn't serve the discovery endpoint", "error", err)
		return
	}
	bounded := &connlimit.Listener{Listener: listener, Limit: discoveryConnections}
	for {
		conn, err := bounded.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(100 * time.Millisecond) // such as too many open files
			continue
		}
		go func() {
			defer conn.Close()
			d.answerAll(conn)
		}()
	}
}

// answerAll answers the requests of one client until it leaves.
func (d discovery) answerAll(conn net.Conn) {
	reader := bufio.NewReaderSize(conn, maxDiscoveryRequest)
	for {
		if err := conn.SetDeadline(time.Now().Add(discoveryIdle)); err != nil {
			return
		}
		line, err := reader.ReadSlice('\n') // Thanos sends no carriage return
		if err != nil {
			return
		}
		request := strings.TrimSpace(string(line))
		if request == "quit" {
			return
		}
		if _, err := io.WriteString(conn, d.answer(request)); err != nil {
			return
		}
	}
}

// answer returns the answer to a request, in bytes as ElastiCache's endpoint sends them.
func (d discovery) answer(request string) string {
	version := d.states.Load().status.Version
	var head string
	switch request {
	case "config get cluster":
		head = "CONFIG cluster 0 "
	case "get " + wire.DiscoveryItem, "gets " + wire.DiscoveryItem: // for engines before 1.4.14
		head = "VALUE " + wire.DiscoveryItem + " 0 "
	case "version":
		return "VERSION " + version + "\r\n"
	case "stats":
		return "STAT version " + version + "\r\nEND\r\n"
	default:
		return "ERROR\r\n"
	}
	list, err := d.list()
	if err != nil || len(list) == 0 {
		return "SERVER_ERROR this pod doesn't know the shards yet\r\n"
	}
	return fmt.Sprintf("%s%d\r\n%s\r\nEND\r\n", head, len(list), list)
}

// storeItem stores the list as an item of memcached, until done is closed.
func (d discovery) storeItem(done <-chan struct{}, c *process.Client) {
	ticker := time.NewTicker(discoveryInterval)
	defer ticker.Stop()
	for {
		if list, err := d.list(); err == nil && len(list) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), process.QueryTimeout)
			err := c.Command(ctx, func(conn *protocol.Conn, ctx context.Context) error {
				return conn.Set(ctx, wire.DiscoveryItem, list, discoveryTTL)
			})
			cancel()
			if err != nil && !errors.Is(err, net.ErrClosed) {
				d.log.Warn("Cannot store the list of the shards", "error", err)
			}
		}
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}
