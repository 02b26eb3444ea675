package agent

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/serve"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/connlimit"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/testvolume"
)

const testHost = "cache-0.team.svc"

// behavior is what differs from a memcached that starts and stops at once.
type behavior struct {
	loads, saves time.Duration
	// lags is how long before the end of the save memcached's clock stands still.
	lags time.Duration
	// exits returns the message with which memcached exits at its start; empty if it doesn't.
	exits func(words []string) string
	// killed says that the kernel kills memcached at its start.
	killed func(words []string) bool
	// deaf says that memcached never listens, and silent that it listens and never responds.
	deaf, silent func(words []string) bool
	// busy memcacheds have no free connection, and stuck ones don't save.
	busy, stuck bool
}

func always([]string) bool { return true }

// without says that words don't contain a word, as those of a dry run don't contain -e.
func without(word string) func([]string) bool {
	return func(words []string) bool { return !slices.Contains(words, word) }
}

// fakeMemcached stands for the memcached of an image. Its connections are in memory, and instead of items it keeps their
// number in the data directory.
type fakeMemcached struct {
	t  *testing.T
	mu sync.Mutex
	behavior
	pid     int
	running *fakeProcess
}

func (f *fakeMemcached) set(change func(*behavior)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.behavior)
}

// latest returns the memcached that was started last with a memory file.
func (f *fakeMemcached) latest() *fakeProcess {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running
}

func (f *fakeMemcached) start(_ string, words []string, server protocol.Server, log *slog.Logger) (*process.Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pid++
	p := &fakeProcess{t: f.t, behavior: f.behavior, words: words, own: server.Address, server: fake.New(), loaded: make(chan struct{})}
	server.DialContext = p.dial
	p.Process = process.New(server, log)
	p.PID, p.Process.Signal = f.pid, p.signal
	p.server.PID, p.server.Before = f.pid, p.before
	if slices.Contains(words, "-Y") {
		p.server.LogIn = p.logIn
	}
	if i := slices.Index(words, "-e"); i >= 0 {
		p.dir = filepath.Dir(words[i+1])
		f.running = p
	}
	go p.run()
	return p.Process, nil
}

type fakeProcess struct {
	*process.Process
	behavior
	t     *testing.T
	words []string
	own   string // the agent's address
	dir   string // of the memory file; empty in a dry run

	server  *fake.Server
	network fake.Network  // closed after the exit
	loaded  chan struct{} // closed when it has loaded its items

	mu     sync.Mutex
	exited bool
	saving bool
	hung   chan struct{} // nil unless it hangs, and closed when it continues
	users  map[string]string
}

func (p *fakeProcess) run() {
	if p.exits != nil {
		if message := p.exits(p.words); message != "" {
			_, _ = fmt.Fprintln(p.Stderr(), message)
			p.end(71 << 8)
			return
		}
	}
	if p.killed != nil && p.killed(p.words) {
		p.end(syscall.WaitStatus(syscall.SIGKILL))
		return
	}
	if p.deaf != nil && p.deaf(p.words) || !p.pass(p.loads) {
		return
	}
	if p.dir != "" {
		p.add(p.load())
	}
	p.readUsers()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.exited {
		p.server.Serve(&p.network, p.own)
		go connlimit.Serve(p.network.Listen(forClients), slog.New(slog.DiscardHandler), func(conn net.Conn) { go p.serveTLS(conn) })
	}
	close(p.loaded)
}

// pass returns false if the process exits first.
func (p *fakeProcess) pass(d time.Duration) bool {
	select {
	case <-p.Done:
		return false
	case <-time.After(d):
		return true
	}
}

func (p *fakeProcess) end(status syscall.WaitStatus) {
	p.mu.Lock()
	exited := p.exited
	p.exited = true
	p.mu.Unlock()
	if !exited {
		p.network.Close()
		p.Exited(status)
	}
}

// clock returns what memcached's clock shows at a time.
func (p *fakeProcess) clock(at time.Time) int64 { return at.Unix() - p.server.Zero().Unix() }

const savedItems = "Kfake_items "

// load deletes memory.meta, as memcached does.
func (p *fakeProcess) load() (items int64) {
	text, err := os.ReadFile(datadir.MetaPath(p.dir))
	if err == nil {
		err = os.Remove(datadir.MetaPath(p.dir))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Error(err)
	}
	if err := os.WriteFile(datadir.MemoryPath(p.dir), nil, 0o600); err != nil {
		p.t.Error(err)
	}
	return max(itemsOf(text), 0)
}

// itemsOf returns the number of items that memory.meta stands for; -1 if it stands for none.
func itemsOf(text []byte) int64 {
	_, rest, ok := strings.Cut(string(text), savedItems)
	number, _, _ := strings.Cut(rest, "\n")
	items, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return -1
	}
	return items
}

func (p *fakeProcess) save() {
	meta, err := os.ReadFile("datadir/testdata/meta/1.6.45")
	if err != nil {
		p.t.Error(err)
	}
	text := string(meta)
	for name, value := range map[string]int64{"current_time": p.clock(time.Now().Add(-p.lags)), "stop_time": time.Now().Unix()} {
		text = regexp.MustCompile("(?m)^K"+name+" .*$").ReplaceAllString(text, fmt.Sprintf("K%s %d", name, value))
	}
	text += savedItems + strconv.Itoa(len(p.server.Items())) + "\n"
	if err := os.WriteFile(datadir.MetaPath(p.dir), []byte(text), 0o600); err != nil {
		p.t.Error(err)
	}
}

func (p *fakeProcess) signal(s os.Signal) error {
	select {
	case <-p.Done:
		return os.ErrProcessDone
	default:
	}
	p.mu.Lock()
	stuck := p.stuck
	if p.saving && s != syscall.SIGKILL {
		p.t.Errorf("memcached gets %s while it saves", s)
	}
	p.saving = p.saving || s == syscall.SIGUSR1
	p.mu.Unlock()
	go func() {
		switch {
		case s == syscall.SIGKILL:
			p.end(syscall.WaitStatus(syscall.SIGKILL))
		case s == syscall.SIGUSR1 && !stuck:
			select {
			case <-p.loaded:
			case <-p.Done:
				return
			}
			if p.pass(p.saves) {
				p.save()
				p.end(0)
			}
		case s == syscall.SIGHUP && p.pass(time.Second):
			p.readUsers()
		}
	}()
	return nil
}

func (p *fakeProcess) readUsers() {
	i := slices.Index(p.words, "-Y")
	if i < 0 {
		return
	}
	text, err := os.ReadFile(p.words[i+1])
	if err != nil {
		p.t.Error(err)
	}
	users := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, password, _ := strings.Cut(strings.TrimSpace(line), ":")
		users[name] = password
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users = users
}

// hang lets memcached answer and save no more, until it continues.
func (p *fakeProcess) hang() (resume func()) {
	hung := make(chan struct{})
	p.change(func() { p.hung, p.stuck = hung, true })
	return func() {
		p.change(func() { p.hung, p.stuck = nil, false })
		close(hung)
	}
}

func (p *fakeProcess) change(set func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set()
}

// add stands for clients that store items.
func (p *fakeProcess) add(items int64) {
	for range items {
		p.server.Set(rand.Text(), fake.Item{})
	}
}

// forClients stands for all addresses but the agent's.
const forClients = "clients"

func (p *fakeProcess) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address != p.own {
		address = forClients
	}
	return p.network.DialContext(ctx, network, address)
}

// serveTLS ends after the handshake.
func (p *fakeProcess) serveTLS(conn net.Conn) {
	defer conn.Close()
	_, text, _ := strings.Cut(strings.Join(p.words, " "), "ssl_chain_cert=")
	path, _, _ := strings.Cut(text, ",")
	certificate, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		p.t.Error(err)
	}
	_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}}).Handshake()
}

// before is what the server does before it answers.
func (p *fakeProcess) before(string) (answer string) {
	p.mu.Lock()
	hung, busy := p.hung, p.busy
	p.mu.Unlock()
	if p.silent != nil && p.silent(p.words) {
		<-p.Done
	}
	if hung != nil {
		select {
		case <-hung:
		case <-p.Done:
		}
	}
	if busy {
		return "ERROR Too many open connections\r\n"
	}
	return ""
}

func (p *fakeProcess) logIn(credentials string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, password, _ := strings.Cut(credentials, " ")
	return password != "" && p.users[name] == password
}

// pod is a pod of a shard whose containers run the supervisor with a fake memcached, in a bubble of synctest.
type pod struct {
	t         *testing.T
	config    config
	memcached *fakeMemcached
	version   string // of memcached
	network   peer.Network
	info      map[string]string
	volume    *testvolume.Volume
	log       *lockedBuilder
	// other is what responds behind the Service; nil if nothing does.
	other atomic.Pointer[wire.Status]
	// known replaces what the agent keeps with the items, if it is set.
	known kept

	// Of the running container.
	*supervisor
	terminations chan os.Signal
	exited       chan struct{}
}

type lockedBuilder struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuilder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuilder) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

var errNoPeer = errors.New("no other pod responds")

func newPod(t *testing.T) *pod {
	t.Helper()
	p := &pod{
		t: t, memcached: &fakeMemcached{t: t}, version: "1.6.45", log: &lockedBuilder{},
		config: config{podUID: "own", dataDir: t.TempDir(), service: testHost + ":11212",
			loopbackPort: wire.LoopbackPort, drainTimeout: time.Minute, handoverMode: wire.ModeStrict},
		info: map[string]string{wire.ArgumentsFile: `["-m","64"]`},
	}
	p.network = peer.Network{Accepts: func(context.Context, string) bool { return true }, Status: func(context.Context, string) (wire.Status, error) {
		if other := p.other.Load(); other != nil {
			return *other, nil
		}
		return wire.Status{}, errNoPeer
	}}
	t.Cleanup(p.abort)
	p.volume = testvolume.New(t, nil)
	p.config.podInfoDir = p.volume.Dir
	p.annotate("", "")
	return p
}

// annotate changes an annotation of the pod.
func (p *pod) annotate(file, text string) {
	p.t.Helper()
	p.info[file] = text
	content := map[string][]byte{}
	for _, name := range []string{wire.StopFile, wire.ArgumentsFile, wire.ProtectionFile, wire.RestartFile, wire.ReceiveFile, wire.ScalingFile} {
		content[name] = []byte(p.info[name])
	}
	p.volume.Put(content)
}

// create starts a container, and returns an error if it can't start memcached.
func (p *pod) create() error {
	p.t.Helper()
	p.terminations, p.exited = make(chan os.Signal, 4), make(chan struct{})
	memcached := process.Binary{Path: "memcached", Version: p.version, Start: p.memcached.start}
	s, err := newSupervisor(p.config, memcached, p.network, &serve.States{}, p.terminations, slog.New(slog.NewTextHandler(p.log, nil)))
	if err != nil {
		return err
	}
	p.supervisor = s
	if p.known != nil {
		s.kept = p.known
	}
	s.begin()
	exited := p.exited
	go func() {
		defer close(exited)
		s.run(p.terminations, nil)
	}()
	return nil
}

// run starts a container, and returns its status when memcached serves.
func (p *pod) run() wire.Status {
	p.t.Helper()
	if err := p.create(); err != nil {
		p.t.Fatal(err)
	}
	return p.await(wire.PhaseServing)
}

func (p *pod) await(phase wire.Phase) wire.Status {
	p.t.Helper()
	return p.awaitStatus(string(phase), func(s wire.Status) bool { return s.Phase == phase })
}

// awaitStatus waits until the supervisor publishes such a status.
func (p *pod) awaitStatus(what string, ok func(wire.Status) bool) wire.Status {
	p.t.Helper()
	timeout := time.After(time.Hour)
	for {
		current := p.states.Load()
		if ok(current.Status) {
			return current.Status
		}
		select {
		case <-current.Superseded:
		case <-p.exited:
			p.t.Fatalf("the container exited with %v before it was %s:\n%s", p.err, what, p.log)
		case <-timeout:
			p.t.Fatalf("never %s: %+v\n%s", what, current.Status, p.log)
		}
	}
}

// ready returns what a probe of the kubelet gets.
func (p *pod) ready() error {
	if code, body := p.get("/readyz"); code != http.StatusOK {
		return errors.New(body)
	}
	return nil
}

// keyFile returns the path of a key for handovers.
func (p *pod) keyFile() string {
	path := filepath.Join(p.config.dataDir, "key")
	if err := os.WriteFile(path, []byte("key"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (p *pod) status() wire.Status { return p.states.Load().Status }

// pass lets time pass.
func (p *pod) pass(d time.Duration) { <-time.After(d) }

// exit waits until the container has stopped, and returns its error.
func (p *pod) exit() error {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(time.Hour):
		p.t.Fatalf("the container doesn't stop: %+v\n%s", p.status(), p.log)
	}
	if latest := p.memcached.latest(); p.err != nil && latest != nil {
		_ = latest.signal(syscall.SIGKILL) // as the kernel does when PID 1 has exited
	}
	return p.err
}

// stop terminates a container, and returns its error.
func (p *pod) stop() error {
	p.t.Helper()
	p.terminations <- syscall.SIGTERM
	return p.exit()
}

// announce announces the next stop.
func (p *pod) announce(token string) {
	p.t.Helper()
	p.annotate(wire.StopFile, token)
	p.awaitStatus("announced", func(s wire.Status) bool { return s.AnnouncedStop == token })
}

// finish terminates the container of a test that needs it no longer.
func (p *pod) finish() {
	p.t.Helper()
	if p.status().AnnouncedStop == "" {
		p.announce(time.Now().String())
	}
	if err := p.stop(); err != nil {
		p.t.Errorf("the container stopped with %v:\n%s", err, p.log)
	}
}

// abort terminates the container of a test that has failed.
func (p *pod) abort() {
	if !p.t.Failed() || p.supervisor == nil {
		return
	}
	p.memcached.set(func(b *behavior) { b.exits = func([]string) string { return "the test has failed" } })
	for range 2 {
		if p.memcached.latest() == nil {
			return
		}
		p.memcached.latest().end(syscall.WaitStatus(syscall.SIGKILL))
		synctest.Wait()
		p.terminations <- syscall.SIGTERM
		synctest.Wait()
	}
}

func (p *pod) wantStart(status wire.Status, result wire.StartResult, items int64, reason string) {
	p.t.Helper()
	if start := status.Start; start.Result != result || start.Items != items || !strings.Contains(start.Reason, reason) {
		p.t.Errorf("started %s with %d items: %s; want %s with %d: %s", start.Result, start.Items, start.Reason, result, items, reason)
	}
}

func (p *pod) wantExit(want string) {
	p.t.Helper()
	if err := p.exit(); err == nil || !strings.Contains(err.Error(), want) {
		p.t.Errorf("the container exited with %v, want %q", err, want)
	}
}

// saved returns how many items are saved; -1 if none are.
func (p *pod) saved() int64 {
	text, err := os.ReadFile(datadir.MetaPath(p.config.dataDir))
	if err != nil {
		return -1
	}
	return itemsOf(text)
}
