package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	address = "127.0.0.1:11211"
	// startTimeout bounds the start of memcached on a slow machine.
	startTimeout = 30 * time.Second
)

// server is a memcached in a control group of its own.
type server struct {
	group
	command *exec.Cmd
	// data is the folder of its memory file; empty if it has none.
	data string
}

// startPlain starts a memcached as charts do.
func (b *bench) startPlain(ctx context.Context, spec *v1alpha1.MemcachedSpec) (*server, error) {
	return b.start(ctx, "plain", "", b.memcached(), "-u", "root", "-U", "0", "-p", "11211",
		"-m", fmt.Sprint(spec.Memory.Value()>>20), "-c", fmt.Sprint(*spec.MaxConnections), "-t", fmt.Sprint(*spec.Threads))
}

// startShard starts a memcached under the agent, with the operator's arguments.
func (b *bench) startShard(ctx context.Context, spec *v1alpha1.MemcachedSpec) (*server, error) {
	spec = spec.DeepCopy()
	spec.ExtraArgs = []string{"-u", "root"} // as this benchmark is run by root
	revision := resources.NewPodRevision(spec, resources.Image{Reference: "memcached:" + b.version, Version: b.version})
	data, info := filepath.Join(b.dir, "data"), filepath.Join(b.dir, "podinfo")
	for _, dir := range []string{data, info} {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{
		agentwire.ArgumentsFile: revision.ArgumentsText, agentwire.RestartFile: "", agentwire.StopFile: "", agentwire.HoldFile: "",
	} {
		if err := os.WriteFile(filepath.Join(info, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return b.start(ctx, "shard", data, b.agent(), "run", "-data", data, "-podinfo", info, "-listen", "127.0.0.1:11212", "-memcached", b.memcached())
}

func (b *bench) start(ctx context.Context, name, data string, words ...string) (*server, error) {
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("another memcached listens on %s: stop it first", address)
	}
	g, err := newGroup(name)
	if err != nil {
		return nil, err
	}
	s := &server{group: g, command: g.command(ctx, words...), data: data}
	if err := s.command.Start(); err != nil {
		return nil, errors.Join(err, g.remove())
	}
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		if _, err = s.stats(ctx); err == nil {
			return s, nil
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("%v doesn't answer: %w", words, err), s.stop())
		}
	}
}

// stop kills the agent and memcached, and deletes what they stored.
func (s *server) stop() error {
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL)
	_ = s.command.Wait() // it was killed
	var err error
	if s.data != "" {
		err = os.RemoveAll(s.data)
	}
	return errors.Join(err, s.remove())
}

func (s *server) stats(ctx context.Context) (protocol.Stats, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, "stats\r\n"); err != nil {
		return nil, err
	}
	return protocol.ReadStats(bufio.NewReader(conn))
}

// fileSize returns how much memory the files of the shard's volume use.
func (s *server) fileSize() (int64, error) {
	var sum int64
	files, err := os.ReadDir(s.data)
	for _, file := range files {
		var stat syscall.Stat_t
		err = errors.Join(err, syscall.Stat(filepath.Join(s.data, file.Name()), &stat))
		sum += stat.Blocks * 512
	}
	return sum, err
}

// fill stores new items until memcached evicts some, and more of them then, so that all that can grow has grown. It returns
// how many items memcached keeps.
func (s *server) fill(ctx context.Context, memory int64, value int) (int64, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	requests, answers := bufio.NewWriterSize(conn, 1<<20), bufio.NewReader(conn)
	body := strings.Repeat("x", value)
	batch := int(memory / int64(value+100) / 20)
	for n, more := 0, 2; ; {
		for range batch {
			n++
			if _, err := fmt.Fprintf(requests, "set key:%010d 0 0 %d noreply\r\n%s\r\n", n, value, body); err != nil {
				return 0, err
			}
		}
		// memcached answers in order, so it has stored all then. It reports errors despite noreply.
		if _, err := requests.WriteString("version\r\n"); err != nil {
			return 0, err
		}
		if err := requests.Flush(); err != nil {
			return 0, err
		}
		for line := ""; !strings.HasPrefix(line, "VERSION "); {
			if line, err = answers.ReadString('\n'); err != nil {
				return 0, err
			}
		}
		stats, err := s.stats(ctx)
		if err != nil {
			return 0, err
		}
		if stats["evictions"] != "0" {
			if more--; more < 0 {
				return protocol.ParseGeneral(stats).Items, nil
			}
		}
	}
}
