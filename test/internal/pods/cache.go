package pods

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Cache is a memcached without an agent.
type Cache struct {
	T       testing.TB
	Command *exec.Cmd
	Port    int
	Dir     string
	Exited  chan struct{}
	Log     *Log
	version string
}

// StartCache starts a memcached that is empty, and waits until it answers.
func StartCache(t testing.TB, version string, args ...string) *Cache {
	t.Helper()
	return StartCacheIn(t, version, SharedDir(t), args...)
}

// StartCacheIn starts a memcached with a data directory, and waits until it answers or exits.
func StartCacheIn(t testing.TB, version, dir string, args ...string) *Cache {
	t.Helper()
	c := &Cache{T: t, version: version, Port: FreePort(t), Dir: dir, Exited: make(chan struct{}), Log: &Log{}}
	c.start(args)
	return c
}

func (c *Cache) start(args []string) {
	c.T.Helper()
	words := append([]string{"-p", strconv.Itoa(c.Port), "-U", "0", "-m", "64"}, args...)
	words = append(words, "-e", filepath.Join(c.Dir, "memory"))
	// Through a shell, since the capability to read MEMCACHED_DIR is not yet effective where the user changes.
	c.Command = exec.Command("sh", append([]string{"-c", `exec "$@"`, "sh", MemcachedPath(c.version)}, words...)...)
	c.Command.SysProcAttr = &syscall.SysProcAttr{
		Setpgid: true, Credential: &syscall.Credential{Uid: UID, Gid: UID}, AmbientCaps: []uintptr{dacReadSearch},
	}
	c.Command.Stdout, c.Command.Stderr = c.Log, c.Log
	Must(c.T, c.Command.Start())
	command, exited := c.Command, c.Exited
	go func() {
		_ = command.Wait()
		close(exited)
	}()
	c.T.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		<-exited
		if c.T.Failed() {
			c.T.Logf("output of memcached %s %v:\n%s", c.version, words, c.Log)
		}
	})
	if !Eventually(func() bool { return c.HasExited() || c.poke() == nil }) {
		c.T.Fatal("memcached neither responds nor exits")
	}
}

// Address returns where clients reach memcached.
func (c *Cache) Address() string { return fmt.Sprintf("127.0.0.1:%d", c.Port) }

// Meta returns the path of the file that describes the saved items.
func (c *Cache) Meta() string { return filepath.Join(c.Dir, "memory.meta") }

// HasExited returns whether memcached has exited.
func (c *Cache) HasExited() bool {
	select {
	case <-c.Exited:
		return true
	default:
		return false
	}
}

func (c *Cache) poke() error {
	conn, err := net.Dial("tcp", c.Address())
	if err != nil {
		return err
	}
	return conn.Close()
}

// Stop sends signals and pokes memcached until it exits.
func (c *Cache) Stop(signals ...syscall.Signal) {
	c.T.Helper()
	for _, signal := range signals {
		Must(c.T, c.Command.Process.Signal(signal))
	}
	if !Eventually(func() bool {
		_ = c.poke() // it looks at signals once a second, or when a client comes
		return c.HasExited()
	}) {
		c.T.Fatalf("memcached still runs after %v", signals)
	}
}

// Items returns the number of all items.
func (c *Cache) Items() int64 {
	c.T.Helper()
	return protocol.ParseGeneral(c.Stats("stats")).Items
}

// Stats returns the answer to a request of statistics.
func (c *Cache) Stats(request string) protocol.Stats {
	c.T.Helper()
	answers, err := protocol.At(c.Address()).QueryStats(c.T.Context(), request)
	Must(c.T, err)
	return answers[0]
}

// Restart starts memcached again after it has exited, at the same address.
func (c *Cache) Restart(args ...string) {
	c.Exited = make(chan struct{})
	c.start(args)
}

// Kill stops memcached without saving anything.
func (c *Cache) Kill() {
	_ = c.Command.Process.Kill()
	<-c.Exited
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
	Must(t, err)
	defer conn.Close()
	Must(t, conn.SetDeadline(time.Now().Add(Patience)))
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

// StopSecond reads the second in which memcached stopped.
func StopSecond(t *testing.T, meta string) int64 {
	t.Helper()
	text, err := os.ReadFile(meta)
	Must(t, err)
	lines := strings.Split(string(text), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Kstop_time ") })
	if at < 0 {
		t.Fatalf("no stop time in %q", text)
	}
	second, err := strconv.ParseInt(strings.TrimPrefix(lines[at], "Kstop_time "), 10, 64)
	Must(t, err)
	return second
}

// NextSecond waits until the wall clock is past a second.
func NextSecond(second int64) {
	time.Sleep(time.Until(time.Unix(second+1, int64(10*time.Millisecond)))) //nolint:forbidigo // memcached counts in seconds
}

// Edit changes memcached's metadata file.
func Edit(t *testing.T, meta string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(meta)
	Must(t, err)
	// Written in place, so that memcached keeps owning it.
	Must(t, os.WriteFile(meta, []byte(change(string(text))), 0o600))
}

// Exists returns whether there is a file or folder.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
