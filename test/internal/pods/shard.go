package pods

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
	// UID is the official image's user. memcached does not run as root.
	UID = 11211
	// dacReadSearch is CAP_DAC_READ_SEARCH: MEMCACHED_DIR may be in a directory that is root's alone.
	dacReadSearch = 2
)

// Shard stands for a pod: a data volume, a pod-info volume, two ports. Its agent can be stopped and started again.
type Shard struct {
	T              testing.TB
	Dir            string
	Data, podInfo  string
	Port, httpPort int
	// HandoverKey is the path of the key; empty if the next agent does not hand over items.
	HandoverKey  string
	HandoverMode agentwire.Mode // empty: the default
	HandoverPort int
	// ScalingKey is the path of the key with which keys move between shards, and Ordinal that of the shard; empty if none move.
	ScalingKey  string
	Ordinal     int
	metricsPort int
	// DiscoveryPort is 0 if the next agent serves no discovery endpoint.
	DiscoveryPort int
	// Secret is the volume with the certificate; empty if the next agent has none. loopbackPort is
	// memcached's port for the agent while clients use TLS.
	Secret string
	// users is the volume with the users; empty if the next agent has none.
	users        string
	LoopbackPort int
	// PodIP is the address that the next agent reports.
	PodIP string
	// PodUID, Service and DrainTimeout are flags of the next start. A drain ends by its timeout only where a test sets a shorter one.
	PodUID, Service string
	DrainTimeout    time.Duration
	// Memcached is the path of the program, at first the newest version.
	Memcached string
	// Attributes are the agent's process attributes.
	Attributes *syscall.SysProcAttr
	// Wrap precedes the agent's command line.
	Wrap []string

	Command *exec.Cmd
	exited  chan struct{}
	Log     *Log
	updates int
}

// NewShard returns a shard whose agent is not started yet.
func NewShard(t testing.TB) *Shard {
	t.Helper()
	s := &Shard{
		T: t, Dir: SharedDir(t), Port: FreePort(t), httpPort: FreePort(t), HandoverPort: FreePort(t), metricsPort: FreePort(t),
		PodUID: "pod-of-" + t.Name(), PodIP: "127.0.0.1", DrainTimeout: time.Hour, Memcached: MemcachedPath(Newest),
		Attributes: &syscall.SysProcAttr{
			Setpgid:     true,
			Credential:  &syscall.Credential{Uid: UID, Gid: UID},
			AmbientCaps: []uintptr{dacReadSearch},
		},
	}
	s.Data, s.podInfo = filepath.Join(s.Dir, "data"), filepath.Join(s.Dir, "podinfo")
	for _, dir := range []string{s.Data, s.podInfo} {
		MakeDir(t, dir)
	}
	Must(t, os.WriteFile(s.TerminationLog(), nil, 0o666))
	Must(t, os.Chmod(s.TerminationLog(), 0o666))
	s.Annotate(agentwire.ArgumentsFile, s.Arguments())
	return s
}

// SharedDir returns a directory in memory that is writable for any user.
func SharedDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "process-") //nolint:usetesting // t.TempDir is on a disk, and root's alone
	Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	MakeDir(t, dir)
	return dir
}

// MakeDir makes a folder that every user may write to.
func MakeDir(t testing.TB, dir string) {
	t.Helper()
	Must(t, errors.Join(os.MkdirAll(dir, 0o777), os.Chmod(dir, 0o777)))
}

var ports atomic.Int32

// FreePort returns a port below those that the kernel gives to clients. No other test may take it between two starts of a
// memcached, which would then silently listen on the other address family only, nor another run of the tests: a socket that
// stays open reserves it.
func FreePort(t testing.TB) int {
	t.Helper()
	// A program that another test starts now would inherit the listener.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for range 15_000 {
		port := 15_000 + int(ports.Add(1))
		if reservation, err := net.Listen("unix", fmt.Sprintf("@memcached-operator-test-port-%d", port)); err != nil {
			continue
		} else if listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err != nil {
			_ = reservation.Close()
		} else {
			reservations.Store(port, reservation) // so that it is not collected
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

var reservations sync.Map

// Arguments returns the annotation's text with this shard's port and more words.
func (s *Shard) Arguments(more ...string) string {
	text, err := json.Marshal(append([]string{"-p", strconv.Itoa(s.Port), "-U", "0", "-m", "64", "-c", "1024"}, more...))
	Must(s.T, err)
	return string(text)
}

// TerminationLog returns the path of the message with which the container terminates.
func (s *Shard) TerminationLog() string { return filepath.Join(s.Dir, "termination-log") }

// Meta returns the path of the file that describes the saved items.
func (s *Shard) Meta() string { return filepath.Join(s.Data, "memory.meta") }

// Address returns where clients reach memcached.
func (s *Shard) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// AgentAddress returns where the agent's HTTP server listens.
func (s *Shard) AgentAddress() string { return fmt.Sprintf("127.0.0.1:%d", s.httpPort) }

// DiscoveryAddress returns where the endpoint for auto discovery listens.
func (s *Shard) DiscoveryAddress() string { return fmt.Sprintf("127.0.0.1:%d", s.DiscoveryPort) }

// MetricsAddress returns where the shard's metrics are served.
func (s *Shard) MetricsAddress() string { return fmt.Sprintf("127.0.0.1:%d", s.metricsPort) }

// Annotate changes one file of the pod-info volume as the kubelet does: it writes all
// files to a new directory, and replaces the symbolic link to the former one.
func (s *Shard) Annotate(name, value string) {
	s.T.Helper()
	s.updates++
	content := map[string]string{agentwire.ArgumentsFile: "", agentwire.RestartFile: "", agentwire.StopFile: "", agentwire.ReceiveFile: "", agentwire.ProtectionFile: "", agentwire.DiscoveryFile: "", agentwire.ScalingFile: ""}
	for file := range content {
		old, err := os.ReadFile(filepath.Join(s.podInfo, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.T.Fatal(err)
		}
		content[file] = string(old)
	}
	content[name] = value
	Project(s.T, s.podInfo, content)
}

var projections atomic.Int32

// Project replaces the content of a volume as the kubelet does.
func Project(t testing.TB, volume string, content map[string]string) {
	t.Helper()
	version := filepath.Join(volume, fmt.Sprintf("..%d", projections.Add(1)))
	MakeDir(t, version)
	for file, text := range content {
		Must(t, os.WriteFile(filepath.Join(version, file), []byte(text), 0o644))
		link := filepath.Join(volume, file)
		if err := os.Symlink(filepath.Join("..data", file), link); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	next := filepath.Join(volume, "..next")
	Must(t, os.Symlink(filepath.Base(version), next))
	Must(t, os.Rename(next, filepath.Join(volume, "..data")))
}

// Launch starts the agent without waiting.
func (s *Shard) Launch() {
	s.T.Helper()
	args := append(append([]string{}, s.Wrap...), AgentPath, "run", "-data", s.Data, "-podinfo", s.podInfo, "-listen", s.AgentAddress(),
		"-service", s.Service, "-drain-timeout", s.DrainTimeout.String(), "-termination-log", s.TerminationLog())
	args = append(args, "-metrics-listen", s.MetricsAddress())
	if s.DiscoveryPort != 0 {
		args = append(args, "-discovery-listen", s.DiscoveryAddress())
	}
	if s.Secret != "" {
		args = append(args, "-tls-dir", s.Secret, "-loopback-port", strconv.Itoa(s.LoopbackPort))
	}
	if s.users != "" {
		args = append(args, "-auth-dir", s.users)
	}
	if s.Memcached != "" {
		args = append(args, "-memcached", s.Memcached)
	}
	if s.HandoverMode != "" {
		args = append(args, "-handover-mode", string(s.HandoverMode))
	}
	if s.HandoverKey != "" {
		args = append(args, "-handover-key", s.HandoverKey, "-handover-listen", fmt.Sprintf("127.0.0.1:%d", s.HandoverPort))
	}
	if s.ScalingKey != "" {
		args = append(args, "-scaling-key", s.ScalingKey, "-ordinal", strconv.Itoa(s.Ordinal))
	}
	command := exec.Command(args[0], args[1:]...)
	command.Env = append(os.Environ(), "POD_UID="+s.PodUID, "POD_IP="+s.PodIP)
	command.SysProcAttr = s.Attributes
	out := &Log{}
	command.Stdout, command.Stderr = out, out
	command.WaitDelay = time.Second
	Must(s.T, command.Start())
	exited := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(exited)
	}()
	s.Command, s.exited, s.Log = command, exited, out
	s.T.Cleanup(func() {
		// The group: a memcached must not outlive an agent that a test killed.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		<-exited
		if s.T.Failed() {
			s.T.Logf("output of agent %d:\n%s", command.Process.Pid, out)
		}
	})
}

// Run starts the agent and waits until memcached serves.
func (s *Shard) Run() agentwire.Status {
	s.T.Helper()
	s.Launch()
	return s.WaitFor("memcached to serve", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseServing })
}

// WaitFor polls the status until it is as wanted.
func (s *Shard) WaitFor(what string, wanted func(agentwire.Status) bool) agentwire.Status {
	s.T.Helper()
	var status agentwire.Status
	var err error
	reached := false
	Eventually(func() bool {
		status, err = s.FetchStatus()
		reached = err == nil && wanted(status)
		return reached || err != nil && s.HasExited()
	})
	if !reached {
		s.T.Fatalf("waited for %s; the last status: %+v, %v", what, status, err)
	}
	return status
}

// HasExited returns whether the agent has exited.
func (s *Shard) HasExited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// FetchStatus returns the status, which has memcached's statistics: a busy machine can be too slow for the time that the
// agent gives memcached for them.
func (s *Shard) FetchStatus() (agentwire.Status, error) {
	status, err := podhttp.Get[agentwire.Status](s.T.Context(), s.AgentAddress(), agentwire.StatusPath)
	switch status.Phase {
	case agentwire.PhaseServing, agentwire.PhaseDraining, agentwire.PhaseFollowing:
		if err == nil && status.MaxBytes == 0 {
			err = errors.New("memcached has not answered the agent in time")
		}
	}
	return status, err
}

// Status waits for the status.
func (s *Shard) Status() agentwire.Status {
	s.T.Helper()
	return s.WaitFor("a status", func(agentwire.Status) bool { return true })
}

// WaitForProbe waits until a probe of the kubelet succeeds.
func (s *Shard) WaitForProbe(path string) {
	s.T.Helper()
	var code int
	var body []byte
	var err error
	if !Eventually(func() bool {
		code, body, err = s.Get(path)
		return err == nil && code == http.StatusOK
	}) {
		s.T.Fatalf("%s: %d %s, %v", path, code, body, err)
	}
}

// Get reads a path of the agent's HTTP server: the status code and the body.
func (s *Shard) Get(path string) (int, []byte, error) {
	client := http.Client{Timeout: Patience}
	response, err := client.Get("http://" + s.AgentAddress() + path)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// Signal sends a signal to the agent.
func (s *Shard) Signal(signal syscall.Signal) {
	s.T.Helper()
	Must(s.T, s.Command.Process.Signal(signal))
}

// Exit waits until the agent exits, and returns its code.
func (s *Shard) Exit() int {
	s.T.Helper()
	select {
	case <-s.exited:
		return s.Command.ProcessState.ExitCode()
	case <-time.After(Patience):
		s.T.Fatalf("the agent still runs after %s", Patience)
		return 0
	}
}

// Announce announces a stop of the container, and waits until the agent reports it.
func (s *Shard) Announce(token string) {
	s.T.Helper()
	s.Annotate(agentwire.StopFile, token)
	s.WaitFor("the announced stop", func(status agentwire.Status) bool { return status.AnnouncedStop == token })
}

// StopContainer sends an announced SIGTERM, as the kubelet does when the image changes.
func (s *Shard) StopContainer() {
	s.T.Helper()
	s.Announce(fmt.Sprintf("stop-%d", s.updates))
	s.Signal(syscall.SIGTERM)
	if status := s.Exit(); status != 0 {
		s.T.Fatalf("the agent exited with code %d after an announced SIGTERM", status)
	}
}

// Reason returns why the container terminated, as Kubernetes reports it.
func (s *Shard) Reason() string {
	s.T.Helper()
	text, err := os.ReadFile(s.TerminationLog())
	Must(s.T, err)
	return string(text)
}

// Fill writes items to a memcached.
func Fill(t testing.TB, address string, size int) {
	t.Helper()
	FillSized(t, address, size, 0)
}

// FillSized writes items with values of so many bytes.
func FillSized(t testing.TB, address string, size, bytes int) {
	t.Helper()
	set := items.Sized("item", size, bytes, address)
	defer set.Close()
	Must(t, set.Fill())
}

// Count returns how many items of fill a memcached has. It needs a new client, whose connections are open.
func Count(t *testing.T, address string, size int) int {
	t.Helper()
	set := items.New("item", size, address)
	defer set.Close()
	n, err := set.Count()
	Must(t, err)
	return n
}

// WantWarm checks that the last start kept the items.
func WantWarm(t *testing.T, status agentwire.Status, itemsBefore int64) {
	t.Helper()
	start := status.Start
	if start.Result != agentwire.StartWarm || start.ItemsBefore != itemsBefore || start.Items*100 < itemsBefore*99 || start.At.IsZero() {
		t.Errorf("start %+v, want Warm with %d items before and 99%% of them after", start, itemsBefore)
	}
}

// WantContains fails the test unless a text contains a part.
func WantContains(t testing.TB, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s is %q, want %q in it", what, text, part)
	}
}

// Log is a buffer for concurrent reads and writes.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// WriteFile writes a file as the kubelet does, at once.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	Must(t, os.WriteFile(path, []byte(text), 0o644))
}

// AsCache lets the tests of snapshots' helpers read and write the items of a shard.
func (s *Shard) AsCache() *Cache { return &Cache{T: s.T, Port: s.Port} }

// Apply changes memcached's arguments in place.
func (s *Shard) Apply(more ...string) agentwire.Status {
	s.T.Helper()
	before := s.Status()
	s.Annotate(agentwire.ArgumentsFile, s.Arguments(more...))
	return s.WaitFor("the new arguments", func(status agentwire.Status) bool {
		if status.ArgumentsError != "" {
			s.T.Fatal(status.ArgumentsError)
		}
		return status.Phase == agentwire.PhaseServing && status.PID != before.PID
	})
}

// WaitForPhase waits until the agent reports a phase, and returns its status.
func (s *Shard) WaitForPhase(phase agentwire.Phase) agentwire.Status {
	s.T.Helper()
	return s.WaitFor("phase "+string(phase), func(status agentwire.Status) bool { return status.Phase == phase })
}

// Kill ends all processes of a container without a warning. None is left when another container starts.
func (s *Shard) Kill() {
	s.T.Helper()
	group := s.Command.Process.Pid
	Must(s.T, syscall.Kill(-group, syscall.SIGKILL))
	<-s.exited
	isOfGroup := func(stat []string) bool { return stat[2] == strconv.Itoa(group) && stat[0] != "Z" && stat[0] != "X" }
	if !Eventually(func() bool { return len(Processes(isOfGroup)) == 0 }) {
		s.T.Fatal("memcached still runs")
	}
}

// Processes returns those of which proc_pid_stat(5) says what is wanted: first the state, the parent and the group.
func Processes(wanted func(stat []string) bool) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		text, _ := os.ReadFile(path) // it may have exited
		_, rest, _ := strings.Cut(string(text), ") ")
		if stat := strings.Fields(rest); len(stat) > 2 && wanted(stat) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}
