// Package discovery serves the list of the shards to clients with ElastiCache's auto discovery. They read it in one of two
// ways, and the agent serves both: most of them request it from an endpoint. AWS's client for Java does so
// only once, and then reads an item of each shard, since memcached itself has no such command.
package discovery

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
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/connlimit"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// maxConnections is how many clients of the endpoint stay connected, at about 10 KiB each.
	maxConnections = 128
	// idleTimeout is longer than the minute between two requests of most clients.
	idleTimeout = 5 * time.Minute
	// maxRequest in bytes is the size of the longest line that is read.
	maxRequest = 512
	// itemInterval is how often the item is stored, and itemTTL, in seconds, how long it
	// lives after the list was withdrawn.
	itemInterval = 15 * time.Second
	itemTTL      = 60
)

// read returns the list of the shards, which a file of the downward API has: the text of the pod's annotation, which is
// empty or what clients expect as the value, a line with the version and one with the servers.
func read(dir string) ([]byte, error) {
	list, err := os.ReadFile(filepath.Join(dir, wire.DiscoveryFile))
	if err != nil {
		return nil, fmt.Errorf("reading the list of the shards: %w", err)
	}
	return list, nil
}

// Endpoint answers clients.
type Endpoint struct {
	// Dir is that of the downward API.
	Dir string
	// Version returns memcached's.
	Version func() string
}

// Serve returns when it can't listen, which the agent survives.
func (e Endpoint) Serve(address string, log *slog.Logger) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Error("This pod doesn't serve the discovery endpoint", "error", err)
		return
	}
	connlimit.Serve(&connlimit.Listener{Listener: listener, Limit: maxConnections}, log, func(conn net.Conn) { go e.answerAll(conn) })
}

// answerAll answers the requests of one client until it leaves.
func (e Endpoint) answerAll(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, maxRequest)
	for {
		if err := conn.SetDeadline(time.Now().Add(idleTimeout)); err != nil {
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
		if _, err := io.WriteString(conn, e.answer(request)); err != nil {
			return
		}
	}
}

// answer returns the answer to a request, in bytes as ElastiCache's endpoint sends them.
func (e Endpoint) answer(request string) string {
	var head string
	switch request {
	case "config get cluster":
		head = "CONFIG cluster 0 "
	case "get " + wire.DiscoveryItem, "gets " + wire.DiscoveryItem: // for engines before 1.4.14
		head = "VALUE " + wire.DiscoveryItem + " 0 "
	case "version":
		return "VERSION " + e.Version() + "\r\n"
	case "stats":
		return "STAT version " + e.Version() + "\r\nEND\r\n"
	default:
		return "ERROR\r\n"
	}
	list, err := read(e.Dir)
	if err != nil || len(list) == 0 {
		return "SERVER_ERROR this pod doesn't know the shards yet\r\n"
	}
	return fmt.Sprintf("%s%d\r\n%s\r\nEND\r\n", head, len(list), list)
}

// StoreItem stores the list of a directory as an item of memcached, until done is closed.
func StoreItem(done <-chan struct{}, c *process.Client, dir string, log *slog.Logger) {
	ticker := time.NewTicker(itemInterval)
	defer ticker.Stop()
	for {
		if list, err := read(dir); err == nil && len(list) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), process.QueryTimeout)
			err := c.Command(ctx, func(conn *protocol.Conn, ctx context.Context) error {
				return conn.Set(ctx, wire.DiscoveryItem, list, itemTTL)
			})
			cancel()
			if err != nil && !errors.Is(err, net.ErrClosed) {
				log.Warn("Cannot store the list of the shards", "error", err)
			}
		}
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}
