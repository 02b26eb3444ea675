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

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

const (
	// uid is the official image's user. memcached refuses to run as root.
	uid = 11211
	// dacReadSearch is CAP_DAC_READ_SEARCH: MEMCACHED_DIR may lie in a folder that
	// is root's alone.
	dacReadSearch = 2
)

// shard is what a pod is to an agent: a data volume, a pod-info volume, two
// ports. Its agent can be stopped and started again over them.
type shard struct {
	t              *testing.T
	dir            string
	data, podInfo  string
	port, httpPort int
	// podUID, service and drainTimeout are what the next start is given.
	podUID, service string
	drainTimeout    time.Duration
	// memcached is the path of the program; the newest version's at first.
	memcached string
	// attributes are the agent's process attributes.
	attributes *syscall.SysProcAttr
	// wrap is put in front of the agent's command line.
	wrap []string

	command *exec.Cmd
	exited  chan struct{}
	log     *log
	updates int
}

func newShard(t *testing.T) *shard {
	t.Helper()
	s := &shard{
		t: t, dir: sharedDir(t), port: freePort(t), httpPort: freePort(t),
		podUID: "pod-of-" + t.Name(), drainTimeout: time.Minute, memcached: memcachedPath(newest),
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
	s.annotate(agentapi.ArgumentsFile, s.arguments())
	return s
}

// sharedDir returns a folder in memory that any user may write to.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "process-") //nolint:usetesting // t.TempDir is on a disk, and root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	makeDir(t, dir)
	return dir
}

func makeDir(t *testing.T, dir string) {
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

// freePort returns a port below those that the kernel gives to clients. Between
// two starts of a memcached nobody may take its port: it would come up on the
// other address family alone, without a word.
func freePort(t testing.TB) int {
	t.Helper()
	// A program that another test starts meanwhile would hold the listener for a
	// moment longer, and pass for the memcached that is to listen here.
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

// arguments returns the annotation's text for this shard's port and more words.
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

// annotate changes one file of the pod-info volume as the kubelet does: all
// files lie in a folder that a symbolic link names, and the link is exchanged.
func (s *shard) annotate(name, value string) {
	s.t.Helper()
	s.updates++
	content := map[string]string{agentapi.ArgumentsFile: "", agentapi.RestartFile: "", agentapi.StopFile: ""}
	if _, err := os.Stat(filepath.Join(s.podInfo, agentapi.HoldFile)); err == nil { // pods of a release before 1.3 have none
		content[agentapi.HoldFile] = ""
	}
	for file := range content {
		old, err := os.ReadFile(filepath.Join(s.podInfo, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.t.Fatal(err)
		}
		content[file] = string(old)
	}
	content[name] = value
	version := filepath.Join(s.podInfo, fmt.Sprintf("..%d", s.updates))
	makeDir(s.t, version)
	for file, text := range content {
		if err := os.WriteFile(filepath.Join(version, file), []byte(text), 0o644); err != nil {
			s.t.Fatal(err)
		}
		link := filepath.Join(s.podInfo, file)
		if err := os.Symlink(filepath.Join("..data", file), link); err != nil && !errors.Is(err, os.ErrExist) {
			s.t.Fatal(err)
		}
	}
	next := filepath.Join(s.podInfo, "..next")
	if err := os.Symlink(filepath.Base(version), next); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(s.podInfo, "..data")); err != nil {
		s.t.Fatal(err)
	}
}

// launch starts the agent and does not wait for anything.
func (s *shard) launch() {
	s.t.Helper()
	args := append(append([]string{}, s.wrap...), agentPath, "run", "-data", s.data, "-podinfo", s.podInfo, "-listen", s.agentAddress(),
		"-service", s.service, "-drain-timeout", s.drainTimeout.String(), "-termination-log", s.terminationLog())
	if s.memcached != "" {
		args = append(args, "-memcached", s.memcached)
	}
	command := exec.Command(args[0], args[1:]...)
	command.Env = append(os.Environ(), "POD_UID="+s.podUID)
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
			s.t.Logf("agent %d said:\n%s", command.Process.Pid, out)
		}
	})
}

// run starts the agent and waits until memcached serves.
func (s *shard) run() agentapi.Status {
	s.t.Helper()
	s.launch()
	return s.waitFor("memcached to serve", func(status agentapi.Status) bool { return status.Phase == agentapi.PhaseServing })
}

// waitFor asks for the status until it is as wanted.
func (s *shard) waitFor(what string, wanted func(agentapi.Status) bool) agentapi.Status {
	s.t.Helper()
	var status agentapi.Status
	var err error
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if status, err = s.ask(); err == nil && wanted(status) {
			return status
		}
		if err != nil && s.hasExited() {
			break
		}
	}
	s.t.Fatalf("waited for %s; the last answer: %+v, %v", what, status, err)
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

func (s *shard) ask() (status agentapi.Status, err error) {
	code, body, err := s.get("/status")
	if err != nil {
		return status, err
	}
	if code != http.StatusOK {
		return status, fmt.Errorf("/status answered %d", code)
	}
	return status, json.Unmarshal(body, &status)
}

func (s *shard) status() agentapi.Status {
	s.t.Helper()
	status, err := s.ask()
	if err != nil {
		s.t.Fatal(err)
	}
	return status
}

func (s *shard) get(path string) (int, []byte, error) {
	client := http.Client{Timeout: 5 * time.Second}
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

// exit waits for the agent's end and returns its status.
func (s *shard) exit(within time.Duration) int {
	s.t.Helper()
	select {
	case <-s.exited:
		return s.command.ProcessState.ExitCode()
	case <-time.After(within):
		s.t.Fatalf("the agent runs still after %s", within)
		return 0
	}
}

// announce tells the agent that only its container is about to end, and waits
// until it knows.
func (s *shard) announce(token string) {
	s.t.Helper()
	s.annotate(agentapi.StopFile, token)
	s.waitFor("the announced stop", func(status agentapi.Status) bool { return status.AnnouncedStop == token })
}

// stopContainer is what the kubelet does when the image changes: an announced SIGTERM.
func (s *shard) stopContainer() {
	s.t.Helper()
	s.announce(fmt.Sprintf("stop-%d", s.updates))
	s.signal(syscall.SIGTERM)
	if status := s.exit(10 * time.Second); status != 0 {
		s.t.Fatalf("the agent ended with status %d after an announced SIGTERM", status)
	}
}

// lastStop is when the agent last told memcached to save.
func (s *shard) lastStop() time.Time {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.data, "last-stop.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	var note struct{ At time.Time }
	if err := json.Unmarshal(text, &note); err != nil {
		s.t.Fatal(err)
	}
	return note.At
}

func (s *shard) reason() string {
	s.t.Helper()
	text, err := os.ReadFile(s.terminationLog())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// fill writes so many items to a memcached.
func fill(t *testing.T, address string, size int) {
	t.Helper()
	set := items.New("item", size, address)
	defer set.Close()
	if err := set.Write(); err != nil {
		t.Fatal(err)
	}
}

// count returns how many items of fill are there. Its client is a new one: the
// connections of an older one may have ended with a memcached.
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
func wantWarm(t *testing.T, status agentapi.Status, itemsBefore int64) {
	t.Helper()
	start := status.Start
	if start.Result != agentapi.StartWarm || start.ItemsBefore != itemsBefore || start.Items*100 < itemsBefore*99 || start.At.IsZero() {
		t.Errorf("start %+v, want Warm with %d items before and 99 %% of them after", start, itemsBefore)
	}
}

func wantContains(t *testing.T, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s is %q, it should hold %q", what, text, part)
	}
}

// log is a buffer that may be read while it is written.
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

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
