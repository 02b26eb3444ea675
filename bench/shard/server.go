// Package shard has the benchmarks of memcached and its agent on this machine, without a cluster. They need root, for control groups.
package shard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// startTimeout bounds the start of memcached on a slow machine.
const startTimeout = time.Minute

// host starts memcacheds of a version on this machine.
type host struct {
	version string
	// dir has the agent's program and the shards' volumes. It is in memory, as a pod's volume is.
	dir     string
	servers []*server
	port    int
}

// onHost calls use with a host, and stops what it started.
func onHost(ctx context.Context, version string, use func(*host) error) (err error) {
	if os.Getenv("MEMCACHED_DIR") == "" || os.Geteuid() != 0 {
		return errors.New("this needs root and MEMCACHED_DIR: run the benchmark with make")
	}
	h := &host{version: version, port: 15000}
	if h.dir, err = os.MkdirTemp("/dev/shm", "bench-"); err != nil {
		return err
	}
	defer func() {
		for _, s := range h.servers {
			err = errors.Join(err, s.stop())
		}
		err = errors.Join(err, os.RemoveAll(h.dir))
	}()
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	// With the flags of the agent's image.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w -X runtime.godebugDefault=disablethp=1", "-o", h.agent(), "./cmd/agent")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the agent: %w: %s", err, out)
	}
	return use(h)
}

func (h *host) agent() string { return filepath.Join(h.dir, "agent") }
func (h *host) memcached() string {
	return filepath.Join(os.Getenv("MEMCACHED_DIR"), h.version, "memcached")
}

// freePort returns a port on which no program listens.
func (h *host) freePort() int {
	for {
		h.port++
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", h.port)); err == nil {
			_ = l.Close()
			return h.port
		}
	}
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// server is a memcached in a control group of its own.
type server struct {
	group
	address string
	command *exec.Cmd
	stopped bool
	// dir has the volumes of a shard, and metrics is the URL of its metrics; empty without an agent.
	dir, metrics string
}

// plain starts a memcached as charts do.
func (h *host) plain(ctx context.Context, memory, connections int64, threads int32) (*server, error) {
	s := &server{address: local(h.freePort())}
	_, port, _ := net.SplitHostPort(s.address)
	return s, h.start(ctx, s, h.memcached(), "-u", "root", "-U", "0", "-p", port, "-m", fmt.Sprint(memory>>20), "-c", fmt.Sprint(connections), "-t", fmt.Sprint(threads))
}

// hostName is that of the certificate of a shard.
const hostName = "localhost"

// shard starts a memcached under the agent, with the operator's arguments and a certificate of ca if the spec has TLS.
func (h *host) shard(ctx context.Context, spec *v1beta1.MemcachedSpec, ca *testcert.CA) (*server, error) {
	spec = spec.DeepCopy()
	spec.Config.ExtraArgs = []string{"-u", "root"} // as this benchmark is run by root
	s := &server{address: local(h.freePort()), dir: filepath.Join(h.dir, fmt.Sprint(h.port))}
	var words []string
	if err := json.Unmarshal([]byte(resources.NewPodRevision(spec, resources.Image{Reference: "memcached:" + h.version, Version: h.version}).ArgumentsText), &words); err != nil {
		return nil, err
	}
	for i := range words {
		if words[i] == "-p" {
			words[i+1] = fmt.Sprint(h.port)
		}
	}
	arguments, err := json.Marshal(words)
	if err != nil {
		return nil, err
	}
	metrics := local(h.freePort())
	s.metrics = "http://" + metrics + "/metrics"
	data, info, secret := filepath.Join(s.dir, "data"), filepath.Join(s.dir, "podinfo"), filepath.Join(s.dir, "secret")
	err = errors.Join(os.MkdirAll(data, 0o755), volume(info, map[string]string{
		agentwire.ArgumentsFile: string(arguments), agentwire.RestartFile: "", agentwire.StopFile: "", agentwire.ProtectionFile: "", agentwire.DiscoveryFile: "",
	}))
	words = []string{h.agent(), "run", "-data", data, "-podinfo", info, "-listen", local(h.freePort()), "-metrics-listen", metrics, "-memcached", h.memcached(),
		"-termination-log", filepath.Join(s.dir, "termination-log")}
	if spec.TLS.IsEnabled() {
		crt, key := ca.Issue(testcert.Options{Names: []string{hostName}})
		err = errors.Join(err, volume(secret, map[string]string{"tls.crt": string(crt), "tls.key": string(key), "ca.crt": string(ca.PEM())}))
		words = append(words, "-tls-dir", secret, "-loopback-port", fmt.Sprint(h.freePort()), "-service", hostName+":1")
	}
	if err != nil {
		return nil, err
	}
	return s, h.start(ctx, s, words...)
}

// volume writes a volume as the kubelet does: the files are symbolic links into a directory with all of them.
func volume(dir string, files map[string]string) error {
	version := filepath.Join(dir, "..1")
	err := errors.Join(os.MkdirAll(version, 0o755), os.Symlink("..1", filepath.Join(dir, "..data")))
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(version, name), []byte(text), 0o600), os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	return err
}

func (h *host) start(ctx context.Context, s *server, words ...string) (err error) {
	if s.group, err = newGroup(strconv.Itoa(h.port)); err != nil {
		return err
	}
	s.command = s.group.command(ctx, words...)
	if err := s.command.Start(); err != nil {
		return errors.Join(err, s.remove())
	}
	h.servers = append(h.servers, s)
	return cluster.Eventually(ctx, "an answer of "+words[0], func(context.Context) error {
		conn, err := net.Dial("tcp", s.address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}

// stop kills the agent and memcached, and deletes what they stored.
func (s *server) stop() error {
	if s.stopped {
		return nil
	}
	s.stopped = true
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL)
	_ = s.command.Wait() // it was killed
	return errors.Join(os.RemoveAll(s.dir), s.remove())
}

func (s *server) stats(ctx context.Context) (protocol.Stats, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
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

// specOf returns a spec with the API's defaults.
func specOf(memory int64, connections int32) *v1beta1.MemcachedSpec {
	m, itemSize := resource(memory), resource(1<<20)
	return &v1beta1.MemcachedSpec{Memory: &m, Config: v1beta1.MemcachedConfig{MaxConnections: &connections, Threads: new(int32(4)), MaxItemSize: &itemSize}}
}
