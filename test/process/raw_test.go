package process

import (
	"errors"
	"fmt"
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
)

// raw is a memcached without an agent.
type raw struct {
	t       testing.TB
	command *exec.Cmd
	port    int
	dir     string
	exited  chan struct{}
	log     *log
}

// startRaw starts a memcached with a data directory and waits until it responds or exits.
func startRaw(t testing.TB, version, dir string, args ...string) *raw {
	t.Helper()
	r := &raw{t: t, port: freePort(t), dir: dir, exited: make(chan struct{}), log: &log{}}
	words := append([]string{"-p", strconv.Itoa(r.port), "-U", "0", "-m", "64"}, args...)
	words = append(words, "-e", filepath.Join(dir, "memory"))
	// Through a shell, since the capability to read MEMCACHED_DIR is not yet effective
	// where the user changes.
	r.command = exec.Command("sh", append([]string{"-c", `exec "$@"`, "sh", memcachedPath(version)}, words...)...)
	r.command.SysProcAttr = &syscall.SysProcAttr{
		Setpgid: true, Credential: &syscall.Credential{Uid: uid, Gid: uid}, AmbientCaps: []uintptr{dacReadSearch},
	}
	r.command.Stdout, r.command.Stderr = r.log, r.log
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.command.Wait()
		close(r.exited)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-r.command.Process.Pid, syscall.SIGKILL)
		<-r.exited
		if t.Failed() {
			t.Logf("output of memcached %s %v:\n%s", version, words, r.log)
		}
	})
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if r.hasExited() || r.poke() == nil {
			return r
		}
	}
	t.Fatal("memcached neither responds nor exits")
	return nil
}

func (r *raw) address() string { return fmt.Sprintf("127.0.0.1:%d", r.port) }
func (r *raw) meta() string    { return filepath.Join(r.dir, "memory.meta") }

func (r *raw) hasExited() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

func (r *raw) poke() error {
	conn, err := net.Dial("tcp", r.address())
	if err != nil {
		return err
	}
	return conn.Close()
}

// stop sends signals and pokes memcached until it exits.
func (r *raw) stop(signals ...syscall.Signal) {
	r.t.Helper()
	for _, signal := range signals {
		if err := r.command.Process.Signal(signal); err != nil {
			r.t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		_ = r.poke()
		select {
		case <-r.exited:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
	r.t.Fatalf("memcached still runs after %v", signals)
}

// count returns the number of all items.
func (r *raw) count() int64 { return itemsOf(r.t, r.address()) }

func itemsOf(t testing.TB, address string) int64 {
	t.Helper()
	conn, err := protocol.At(address).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	general, err := conn.General(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return general.Items
}

// stopSecond reads the second in which memcached stopped.
func stopSecond(t *testing.T, meta string) int64 {
	t.Helper()
	text, err := os.ReadFile(meta)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Kstop_time ") })
	if at < 0 {
		t.Fatalf("no stop time in %q", text)
	}
	second, err := strconv.ParseInt(strings.TrimPrefix(lines[at], "Kstop_time "), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return second
}

// nextSecond waits until the wall clock is past a second.
func nextSecond(second int64) {
	time.Sleep(time.Until(time.Unix(second+1, int64(10*time.Millisecond))))
}

// earlyInSecond waits until most of a second of the wall clock is left.
func earlyInSecond() {
	now := time.Now()
	if now.Nanosecond() > int(300*time.Millisecond) {
		nextSecond(now.Unix())
	}
}

// edit changes memcached's metadata file.
func edit(t *testing.T, meta string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(meta)
	if err != nil {
		t.Fatal(err)
	}
	// Written in place, so that memcached keeps owning it.
	if err := os.WriteFile(meta, []byte(change(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
