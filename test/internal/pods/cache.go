package pods

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Cache is a memcached that can be restarted under its address.
type Cache struct {
	T       testing.TB
	version string
	port    int
	Args    []string
	command *exec.Cmd
	exited  chan struct{}
}

// StartCache starts a memcached of its own port and waits until it answers.
func StartCache(t testing.TB, version string, args ...string) *Cache {
	t.Helper()
	c := &Cache{T: t, version: version, port: FreePort(t), Args: args}
	c.Start()
	t.Cleanup(c.Kill)
	return c
}

// Address returns where clients reach memcached.
func (c *Cache) Address() string { return fmt.Sprintf("127.0.0.1:%d", c.port) }

// Start starts memcached and waits until it answers.
func (c *Cache) Start() {
	c.T.Helper()
	c.command = exec.Command(MemcachedPath(c.version), append([]string{"-u", "root", "-p", strconv.Itoa(c.port), "-U", "0"}, c.Args...)...)
	if err := c.command.Start(); err != nil {
		c.T.Fatal(err)
	}
	exited := make(chan struct{})
	command := c.command
	go func() {
		_ = command.Wait()
		close(exited)
	}()
	c.exited = exited
	if !Eventually(func() bool { return c.poke() == nil }) {
		c.T.Fatal("memcached does not answer")
	}
}

// Kill stops memcached without saving anything.
func (c *Cache) Kill() {
	_ = c.command.Process.Kill()
	<-c.exited
}

func (c *Cache) poke() error {
	conn, err := net.Dial("tcp", c.Address())
	if err != nil {
		return err
	}
	return conn.Close()
}

// Talk sends text and returns the answers.
func (c *Cache) Talk(text string) string {
	c.T.Helper()
	return Talk(c.T, c.Address(), text)
}

// Talk sends text to a server and returns the answers up to that of a final mn.
func Talk(t testing.TB, address, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, text+"mn\r\n") }()
	var out strings.Builder
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", out.String(), err)
		}
		if line == "MN\r\n" {
			return out.String()
		}
		out.WriteString(line)
	}
}

func addresses(caches ...*Cache) []string {
	var list []string
	for _, c := range caches {
		list = append(list, c.Address())
	}
	return list
}

// SaveTask returns the task of a Job that saves caches into a folder.
func SaveTask(caches ...*Cache) snapshotwire.Task {
	return snapshotwire.Task{ID: "backup-1", Path: "ns/cache/nightly-1", Servers: addresses(caches...),
		Memcached: snapshotwire.Memcached{Namespace: "ns", Name: "cache", UID: "7", Version: caches[0].version}}
}

// LoadTask returns the task of a Job that loads a snapshot into caches.
func LoadTask(caches ...*Cache) snapshotwire.Task {
	task := SaveTask(caches...)
	task.ID, task.Load = "restore-1", &snapshotwire.Load{}
	return task
}

// Items returns the number of all items.
func (c *Cache) Items() int64 { return itemsOf(c.T, c.Address()) }

// FillCaches writes so many items of 500 bytes with keys and half random values.
func FillCaches(t testing.TB, size, valueBytes int, caches ...*Cache) {
	t.Helper()
	var group errgroup.Group
	for i, c := range caches {
		group.Go(func() error {
			conn, err := net.Dial("tcp", c.Address())
			if err != nil {
				return err
			}
			defer conn.Close()
			value := make([]byte, valueBytes)
			seed := uint64(i + 1)
			var text []byte
			for n := range size {
				// Half of it hard to compress, as values often are.
				for at := 0; at < valueBytes; at++ {
					if at%2 == 0 {
						seed = seed*6364136223846793005 + 1442695040888963407
						value[at] = byte(seed >> 56)
					} else {
						value[at] = 'a' + byte(at%16)
					}
				}
				text = append(text, "set key:"...)
				text = strconv.AppendInt(text, int64(i), 10)
				text = append(text, ':')
				text = strconv.AppendInt(text, int64(n), 10)
				text = append(text, " 0 0 "...)
				text = strconv.AppendInt(text, int64(valueBytes), 10)
				text = append(text, " noreply\r\n"...)
				text = append(text, value...)
				text = append(text, "\r\n"...)
				if len(text) > 1<<20 || n == size-1 {
					if n == size-1 {
						text = append(text, "mn\r\n"...)
					}
					if _, err := conn.Write(text); err != nil {
						return err
					}
					text = text[:0]
				}
			}
			answer := make([]byte, 4)
			if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "MN\r\n" {
				return fmt.Errorf("answer %q: %w", answer, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
