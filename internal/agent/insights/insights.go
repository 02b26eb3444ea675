// Package insights has what users may see of each other: the most-read keys, a sample of all keys, and the addresses of
// clients. The agent serves them at a Unix socket in the data volume, for "agent hotkeys", "agent sample" and
// "agent connections" in the same container. So the API server decides who sees them, by the
// permission to run commands in the pod.
package insights

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/files"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/connlimit"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// WatchTime is how long the agent watches reads by default.
	WatchTime = 5 * time.Second
	// MaxWatchTime is how long it watches them at most.
	MaxWatchTime = 30 * time.Second
	// maxRequests is how many connections stay at the socket.
	maxRequests = 16
	// maxReads ends a watch before. They are enough for a key with 1% of the reads, and a
	// shard that is busy must not work for the watch any longer.
	maxReads = 100_000
	// maxKeys are counted at once. A key with more than one in so many reads is always found.
	maxKeys = 1000
	// topKeys and topClients are in an answer.
	topKeys, topClients = 20, 50
	// sampleKeys are in a sample: enough to find the ring by which clients have placed them.
	sampleKeys = 2000
	// maxListed bounds the connections that memcached lists, with about 400 bytes for each.
	maxListed = 20_000
	// connsTimeout bounds the list of connections, and a sample.
	connsTimeout = 5 * time.Second
)

func socket(dir string) string { return filepath.Join(dir, "insights.sock") }

// Memcached returns how the agent connects to it, nil while it doesn't serve, and its phase.
type Memcached func() (*process.Client, wire.Phase)

// Serve returns when it can't listen in the data volume, which the agent survives.
func Serve(dir string, memcached Memcached, log *slog.Logger) {
	path := socket(dir)
	err := files.RemoveIfExists(path) // of an earlier agent
	var listener net.Listener
	if err == nil {
		listener, err = net.Listen("unix", path)
	}
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		log.Warn("This pod has no insights", "error", err)
		return
	}
	server := &http.Server{Handler: handler(memcached), ReadTimeout: 2 * time.Second, WriteTimeout: 2 * MaxWatchTime, MaxHeaderBytes: 8 << 10}
	_ = server.Serve(&connlimit.Listener{Listener: listener, Limit: maxRequests})
}

func handler(memcached Memcached) http.Handler {
	mux := http.NewServeMux()
	slot := make(chan struct{}, 1)
	handle := func(path string, answer func(ctx context.Context, c *process.Client, r *http.Request) ([]byte, error)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			select {
			case slot <- struct{}{}:
				defer func() { <-slot }()
			default:
				http.Error(w, "another request is running: try again", http.StatusTooManyRequests)
				return
			}
			client, phase := memcached()
			if client == nil {
				http.Error(w, "memcached is not serving: phase "+string(phase), http.StatusServiceUnavailable)
				return
			}
			text, err := answer(r.Context(), client, r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			_, _ = w.Write(text)
		})
	}
	handle("/hotkeys", func(ctx context.Context, c *process.Client, r *http.Request) ([]byte, error) {
		duration, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil || duration <= 0 || duration > MaxWatchTime {
			return nil, fmt.Errorf("-for must be at most %s", MaxWatchTime)
		}
		return hotKeys(ctx, c, duration)
	})
	handle("/connections", func(ctx context.Context, c *process.Client, _ *http.Request) ([]byte, error) {
		return connections(ctx, c)
	})
	handle("/sample", func(ctx context.Context, c *process.Client, _ *http.Request) ([]byte, error) {
		return sample(ctx, c.Server)
	})
	return mux
}

// sample lists the keys of a dump, in base64, up to a number. The order of a dump is random, and memcached stops when its client
// disconnects. It is read here and not through a network that may be slow: a dump blocks other clients while its own doesn't read.
func sample(ctx context.Context, server protocol.Server) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, connsTimeout)
	defer cancel()
	var out bytes.Buffer
	n, enough := 0, errors.New("enough")
	err := server.Dump(ctx, connsTimeout, func(item protocol.Listed) error {
		if string(item.Key) == wire.DiscoveryItem { // of the agent
			return nil
		}
		if n == sampleKeys {
			return enough
		}
		n++
		fmt.Fprintln(&out, base64.StdEncoding.EncodeToString(item.Key))
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return nil, fmt.Errorf("listing keys of memcached: %w", err)
	}
	return out.Bytes(), nil
}

// hotKeys watches reads over a connection of its own.
func hotKeys(ctx context.Context, c *process.Client, duration time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	conn, err := c.Server.Dial(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	counts := keyCounts{keys: map[string]*keyCount{}}
	skipped, err := conn.WatchFetches(ctx, func(f protocol.Fetch) bool {
		counts.add(f)
		return counts.reads < maxReads
	})
	if err != nil {
		return nil, fmt.Errorf("watching the reads of memcached: %w", err)
	}
	return counts.text(time.Since(began), skipped), nil
}

// keyCount counts the reads of a key, less those that keyCounts took from it.
type keyCount struct {
	count int
	// hits of the seen reads
	seen, hits int
}

// keyCounts counts with the algorithm of Misra and Gries: a count is too low by at most taken.
type keyCounts struct {
	keys               map[string]*keyCount
	reads, hits, taken int
}

func (c *keyCounts) add(f protocol.Fetch) {
	hit := 0
	if f.Hit {
		hit = 1
	}
	c.reads++
	c.hits += hit
	k := c.keys[string(f.Key)]
	if k == nil {
		if len(c.keys) == maxKeys {
			c.taken++
			for key, k := range c.keys {
				if k.count--; k.count == 0 {
					delete(c.keys, key)
				}
			}
			return
		}
		k = &keyCount{}
		c.keys[string(f.Key)] = k
	}
	k.count++
	k.seen++
	k.hits += hit
}

func (c *keyCounts) text(took time.Duration, skipped int64) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d reads in %.1fs", c.reads, took.Seconds())
	if c.reads == 0 {
		out.WriteString("\n")
		return out.Bytes()
	}
	fmt.Fprintf(&out, ", %.1f%% hits", percent(c.hits, c.reads))
	if skipped > 0 {
		fmt.Fprintf(&out, "; memcached did not report %d more", skipped)
	}
	fmt.Fprintf(&out, "\n%8s %7s %6s  %s\n", "READS", "SHARE", "HITS", "KEY")
	counts := map[string]int{}
	for key, k := range c.keys {
		counts[key] = k.count
	}
	for _, key := range most(counts, topKeys) {
		k := c.keys[key]
		if quoted := strconv.Quote(key); len(quoted) > len(key)+2 { // it could control a terminal
			key = quoted
		}
		fmt.Fprintf(&out, "%8d %6.1f%% %5.0f%%  %s\n", k.count+c.taken, percent(k.count+c.taken, c.reads), percent(k.hits, k.seen), key)
	}
	if c.taken > 0 {
		fmt.Fprintf(&out, "Each number of reads can be too high by %d.\n", c.taken)
	}
	return out.Bytes()
}

func percent(part, of int) float64 { return 100 * float64(part) / float64(of) }

// holder is what the connections of one address have in common.
type holder struct {
	connections, idle int
	longest           int64
}

// connections lists the clients over the kept connection, so that it works when no other is
// free.
func connections(ctx context.Context, c *process.Client) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, connsTimeout)
	defer cancel()
	holders, err := process.Query(ctx, c, func(conn *protocol.Conn, ctx context.Context) (map[string]*holder, error) {
		holders := map[string]*holder{}
		return holders, conn.Conns(ctx, maxListed, func(one protocol.ClientConn) {
			h := holders[one.Host]
			if h == nil {
				h = &holder{}
				holders[one.Host] = h
			}
			h.connections++
			if one.Idle >= 60 {
				h.idle++
			}
			h.longest = max(h.longest, one.Idle)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("listing the connections of memcached: %w", err)
	}
	counts, total := map[string]int{}, 0
	for host, h := range holders {
		counts[host] = h.connections
		total += h.connections
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d connections of %d addresses\n%11s %8s %12s  %s\n", total, len(holders), "CONNECTIONS", "IDLE>1m", "LONGEST IDLE", "ADDRESS")
	for _, host := range most(counts, topClients) {
		h := holders[host]
		fmt.Fprintf(&out, "%11d %8d %12s  %s\n", h.connections, h.idle, time.Duration(h.longest)*time.Second, host)
	}
	return out.Bytes(), nil
}

// most returns at most n names, those with the largest counts first.
func most(counts map[string]int, n int) []string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if n := counts[b] - counts[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	return names[:min(len(names), n)]
}

// Print prints an answer of the agent that runs in the same container, to "hotkeys", "sample" or "connections".
func Print(out io.Writer, dir, command string, watch time.Duration) error {
	conn, err := net.Dial("unix", socket(dir))
	if err != nil {
		return fmt.Errorf("connecting to the agent: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * MaxWatchTime))
	if _, err := fmt.Fprintf(conn, "GET /%s?for=%s HTTP/1.0\r\n\r\n", command, watch); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return fmt.Errorf("reading the answer of the agent: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 8<<10))
		return errors.New(strings.TrimSpace(string(text)))
	}
	_, err = io.Copy(out, response.Body)
	return err
}
