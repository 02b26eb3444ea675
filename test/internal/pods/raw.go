package pods

import (
	"bytes"
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
)

// Raw is a memcached without an agent.
type Raw struct {
	t       testing.TB
	Command *exec.Cmd
	Port    int
	Dir     string
	Exited  chan struct{}
	Log     *Log
}

// StartRaw starts a memcached with a data directory and waits until it responds or exits.
func StartRaw(t testing.TB, version, dir string, args ...string) *Raw {
	t.Helper()
	r := &Raw{t: t, Port: FreePort(t), Dir: dir, Exited: make(chan struct{}), Log: &Log{}}
	words := append([]string{"-p", strconv.Itoa(r.Port), "-U", "0", "-m", "64"}, args...)
	words = append(words, "-e", filepath.Join(dir, "memory"))
	// Through a shell, since the capability to read MEMCACHED_DIR is not yet effective
	// where the user changes.
	r.Command = exec.Command("sh", append([]string{"-c", `exec "$@"`, "sh", MemcachedPath(version)}, words...)...)
	r.Command.SysProcAttr = &syscall.SysProcAttr{
		Setpgid: true, Credential: &syscall.Credential{Uid: UID, Gid: UID}, AmbientCaps: []uintptr{dacReadSearch},
	}
	r.Command.Stdout, r.Command.Stderr = r.Log, r.Log
	if err := r.Command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.Command.Wait()
		close(r.Exited)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-r.Command.Process.Pid, syscall.SIGKILL)
		<-r.Exited
		if t.Failed() {
			t.Logf("output of memcached %s %v:\n%s", version, words, r.Log)
		}
	})
	if !Eventually(func() bool { return r.HasExited() || r.poke() == nil }) {
		t.Fatal("memcached neither responds nor exits")
	}
	return r
}

// Address returns where clients reach memcached.
func (r *Raw) Address() string { return fmt.Sprintf("127.0.0.1:%d", r.Port) }

// Meta returns the path of the file that describes the saved items.
func (r *Raw) Meta() string { return filepath.Join(r.Dir, "memory.meta") }

// HasExited returns whether memcached has exited.
func (r *Raw) HasExited() bool {
	select {
	case <-r.Exited:
		return true
	default:
		return false
	}
}

func (r *Raw) poke() error {
	conn, err := net.Dial("tcp", r.Address())
	if err != nil {
		return err
	}
	return conn.Close()
}

// Stop sends signals and pokes memcached until it exits.
func (r *Raw) Stop(signals ...syscall.Signal) {
	r.t.Helper()
	for _, signal := range signals {
		if err := r.Command.Process.Signal(signal); err != nil {
			r.t.Fatal(err)
		}
	}
	if !Eventually(func() bool {
		_ = r.poke() // it looks at signals once a second, or when a client comes
		return r.HasExited()
	}) {
		r.t.Fatalf("memcached still runs after %v", signals)
	}
}

// Count returns the number of all items.
func (r *Raw) Count() int64 { return itemsOf(r.t, r.Address()) }

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

// StopSecond reads the second in which memcached stopped.
func StopSecond(t *testing.T, meta string) int64 {
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

// NextSecond waits until the wall clock is past a second.
func NextSecond(second int64) {
	time.Sleep(time.Until(time.Unix(second+1, int64(10*time.Millisecond)))) //nolint:forbidigo // memcached counts in seconds
}

// Edit changes memcached's metadata file.
func Edit(t *testing.T, meta string, change func(string) string) {
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

// Exists returns whether there is a file or folder.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// Ask returns the answer to a request, which ends with end.
func (r *Raw) Ask(request, end string) string {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.Address())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		r.t.Fatal(err)
	}
	var answer []byte
	for buffer := make([]byte, 4096); !bytes.HasSuffix(answer, []byte(end)); {
		n, err := conn.Read(buffer)
		answer = append(answer, buffer[:n]...)
		if err != nil {
			r.t.Fatalf("%v after %.100q", err, answer)
		}
	}
	return string(answer)
}
