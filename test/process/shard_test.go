package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/podhttp"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

const (
	// uid is the official image's user. memcached does not run as root.
	uid = 11211
	// dacReadSearch is CAP_DAC_READ_SEARCH: MEMCACHED_DIR may be in a directory that
	// is root's alone.
	dacReadSearch = 2
	// patience bounds hangs, and nothing else: no test compares it with what it measures.
	patience = 2 * time.Minute
)

// shard stands for a pod: a data volume, a pod-info volume, two ports. Its agent can
// be stopped and started again.
type shard struct {
	t              testing.TB
	dir            string
	data, podInfo  string
	port, httpPort int
	// handoverKey is the path of the key; empty if the next agent does not hand over items.
	handoverKey  string
	handoverMode agentwire.Mode // empty: the default
	handoverPort int
	metricsPort  int
	// discoveryPort is 0 if the next agent serves no discovery endpoint.
	discoveryPort int
	// secret is the volume with the certificate; empty if the next agent has none. loopbackPort is
	// memcached's port for the agent while clients use TLS.
	secret string
	// users is the volume with the users; empty if the next agent has none.
	users        string
	loopbackPort int
	// podIP is the address that the next agent reports.
	podIP string
	// podUID, service and drainTimeout are flags of the next start.
	podUID, service string
	drainTimeout    time.Duration
	// memcached is the path of the program, at first the newest version.
	memcached string
	// attributes are the agent's process attributes.
	attributes *syscall.SysProcAttr
	// wrap precedes the agent's command line.
	wrap []string

	command *exec.Cmd
	exited  chan struct{}
	log     *log
	updates int
}

func newShard(t testing.TB) *shard {
	t.Helper()
	s := &shard{
		t: t, dir: sharedDir(t), port: freePort(t), httpPort: freePort(t), handoverPort: freePort(t), metricsPort: freePort(t),
		podUID: "pod-of-" + t.Name(), podIP: "127.0.0.1", drainTimeout: time.Minute, memcached: memcachedPath(newest),
		attributes: &syscall.SysProcAttr{
			Setpgid:     true,
			Credential:  &syscall.Credential{Uid: uid, Gid: uid},
			AmbientCaps: []uintptr{dacReadSearch},
		},
	}
	s.data, s.podInfo = filepath.Join(s.dir, "data"), filepath.Join(s.dir, "podinfo")
	for _, dir := range []string{s.data, s.podInfo} {
		makeDir(t, dir)
	}
	if err := os.WriteFile(s.terminationLog(), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.terminationLog(), 0o666); err != nil {
		t.Fatal(err)
	}
	s.annotate(agentwire.ArgumentsFile, s.arguments())
	return s
}

// sharedDir returns a directory in memory that is writable for any user.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "process-") //nolint:usetesting // t.TempDir is on a disk, and root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	makeDir(t, dir)
	return dir
}

func makeDir(t testing.TB, dir string) {
	t.Helper()
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var ports atomic.Int32

// freePort returns a port below those that the kernel gives to clients. No other
// process may take it between two starts of a memcached, which would then silently
// listen on the other address family only.
func freePort(t testing.TB) int {
	t.Helper()
	// A program that another test starts now would inherit the listener.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for range 1000 {
		port := 15000 + int(ports.Add(1))
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// arguments returns the annotation's text with this shard's port and more words.
func (s *shard) arguments(more ...string) string {
	text, err := json.Marshal(append([]string{"-p", strconv.Itoa(s.port), "-U", "0", "-m", "64", "-c", "1024"}, more...))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *shard) terminationLog() string { return filepath.Join(s.dir, "termination-log") }
func (s *shard) meta() string           { return filepath.Join(s.data, "memory.meta") }
func (s *shard) address() string        { return fmt.Sprintf("127.0.0.1:%d", s.port) }
func (s *shard) agentAddress() string   { return fmt.Sprintf("127.0.0.1:%d", s.httpPort) }

func (s *shard) discoveryAddress() string { return fmt.Sprintf("127.0.0.1:%d", s.discoveryPort) }

func (s *shard) metricsAddress() string { return fmt.Sprintf("127.0.0.1:%d", s.metricsPort) }

// annotate changes one file of the pod-info volume as the kubelet does: it writes all
// files to a new directory, and replaces the symbolic link to the former one.
func (s *shard) annotate(name, value string) {
	s.t.Helper()
	s.updates++
	content := map[string]string{agentwire.ArgumentsFile: "", agentwire.RestartFile: "", agentwire.StopFile: "", agentwire.HoldFile: "", agentwire.DiscoveryFile: ""}
	for file := range content {
		old, err := os.ReadFile(filepath.Join(s.podInfo, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.t.Fatal(err)
		}
		content[file] = string(old)
	}
	content[name] = value
	project(s.t, s.podInfo, s.updates, content)
}

// project replaces the content of a volume as the kubelet does.
func project(t testing.TB, volume string, generation int, content map[string]string) {
	t.Helper()
	version := filepath.Join(volume, fmt.Sprintf("..%d", generation))
	makeDir(t, version)
	for file, text := range content {
		if err := os.WriteFile(filepath.Join(version, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(volume, file)
		if err := os.Symlink(filepath.Join("..data", file), link); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	next := filepath.Join(volume, "..next")
	if err := os.Symlink(filepath.Base(version), next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(volume, "..data")); err != nil {
		t.Fatal(err)
	}
}

// launch starts the agent without waiting.
func (s *shard) launch() {
	s.t.Helper()
	args := append(append([]string{}, s.wrap...), agentPath, "run", "-data", s.data, "-podinfo", s.podInfo, "-listen", s.agentAddress(),
		"-service", s.service, "-drain-timeout", s.drainTimeout.String(), "-termination-log", s.terminationLog())
	args = append(args, "-metrics-listen", s.metricsAddress())
	if s.discoveryPort != 0 {
		args = append(args, "-discovery-listen", s.discoveryAddress())
	}
	if s.secret != "" {
		args = append(args, "-tls-dir", s.secret, "-loopback-port", strconv.Itoa(s.loopbackPort))
	}
	if s.users != "" {
		args = append(args, "-auth-dir", s.users)
	}
	if s.memcached != "" {
		args = append(args, "-memcached", s.memcached)
	}
	if s.handoverMode != "" {
		args = append(args, "-handover-mode", string(s.handoverMode))
	}
	if s.handoverKey != "" {
		args = append(args, "-handover-key", s.handoverKey, "-handover-listen", fmt.Sprintf("127.0.0.1:%d", s.handoverPort))
	}
	command := exec.Command(args[0], args[1:]...)
	command.Env = append(os.Environ(), "POD_UID="+s.podUID, "POD_IP="+s.podIP)
	command.SysProcAttr = s.attributes
	out := &log{}
	command.Stdout, command.Stderr = out, out
	command.WaitDelay = time.Second
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(exited)
	}()
	s.command, s.exited, s.log = command, exited, out
	s.t.Cleanup(func() {
		// The group: a memcached must not outlive an agent that a test killed.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		<-exited
		if s.t.Failed() {
			s.t.Logf("output of agent %d:\n%s", command.Process.Pid, out)
		}
	})
}

// run starts the agent and waits until memcached serves.
func (s *shard) run() agentwire.Status {
	s.t.Helper()
	s.launch()
	return s.waitFor("memcached to serve", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseServing })
}

// waitFor polls the status until it is as wanted.
func (s *shard) waitFor(what string, wanted func(agentwire.Status) bool) agentwire.Status {
	s.t.Helper()
	var status agentwire.Status
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if status, err = s.fetchStatus(); err == nil && wanted(status) {
			return status
		}
		if err != nil && s.hasExited() {
			break
		}
	}
	s.t.Fatalf("waited for %s; the last status: %+v, %v", what, status, err)
	return status
}

func (s *shard) hasExited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

func (s *shard) fetchStatus() (agentwire.Status, error) {
	return podhttp.Get[agentwire.Status](s.t.Context(), s.agentAddress(), agentwire.StatusPath)
}

func (s *shard) status() agentwire.Status {
	s.t.Helper()
	status, err := s.fetchStatus()
	if err != nil {
		s.t.Fatal(err)
	}
	return status
}

func (s *shard) get(path string) (int, []byte, error) {
	client := http.Client{Timeout: patience}
	response, err := client.Get("http://" + s.agentAddress() + path)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

func (s *shard) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.command.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// exit waits until the agent exits, and returns its code.
func (s *shard) exit() int {
	s.t.Helper()
	select {
	case <-s.exited:
		return s.command.ProcessState.ExitCode()
	case <-time.After(patience):
		s.t.Fatalf("the agent still runs after %s", patience)
		return 0
	}
}

// exitWithoutDrain waits until the agent exits, which must not be the end of its drain, and
// returns its code.
func (s *shard) exitWithoutDrain() int {
	s.t.Helper()
	began := time.Now()
	code := s.exit()
	if took := time.Since(began); took > s.drainTimeout*3/4 {
		s.t.Errorf("it exited after %s: it drained for %s", took, s.drainTimeout)
	}
	return code
}

// announce announces a stop of the container, and waits until the agent reports it.
func (s *shard) announce(token string) {
	s.t.Helper()
	s.annotate(agentwire.StopFile, token)
	s.waitFor("the announced stop", func(status agentwire.Status) bool { return status.AnnouncedStop == token })
}

// stopContainer sends an announced SIGTERM, as the kubelet does when the image changes.
func (s *shard) stopContainer() {
	s.t.Helper()
	s.announce(fmt.Sprintf("stop-%d", s.updates))
	s.signal(syscall.SIGTERM)
	if status := s.exitWithoutDrain(); status != 0 {
		s.t.Fatalf("the agent exited with code %d after an announced SIGTERM", status)
	}
}

// lastStop returns when the agent last sent the save signal.
func (s *shard) lastStop() time.Time {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.data, "last-stop.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	var record struct{ At time.Time }
	if err := json.Unmarshal(text, &record); err != nil {
		s.t.Fatal(err)
	}
	return record.At
}

func (s *shard) reason() string {
	s.t.Helper()
	text, err := os.ReadFile(s.terminationLog())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// fill writes items to a memcached.
func fill(t testing.TB, address string, size int) {
	t.Helper()
	set := items.New("item", size, address)
	defer set.Close()
	if err := set.Write(); err != nil {
		t.Fatal(err)
	}
}

// count returns how many items of fill a memcached has. It needs a new client, whose
// connections are open.
func count(t *testing.T, address string, size int) int {
	t.Helper()
	set := items.New("item", size, address)
	defer set.Close()
	n, err := set.Count()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wantWarm checks that the last start kept the items.
func wantWarm(t *testing.T, status agentwire.Status, itemsBefore int64) {
	t.Helper()
	start := status.Start
	if start.Result != agentwire.StartWarm || start.ItemsBefore != itemsBefore || start.Items*100 < itemsBefore*99 || start.At.IsZero() {
		t.Errorf("start %+v, want Warm with %d items before and 99%% of them after", start, itemsBefore)
	}
}

func wantContains(t testing.TB, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s is %q, want %q in it", what, text, part)
	}
}

// log is a buffer for concurrent reads and writes.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
