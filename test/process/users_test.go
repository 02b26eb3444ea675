package process

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

// wordsLogin are those with which the operator switches authentication on.
var wordsLogin = []string{"-Y", "users"}

// userShard is a shard whose pod mounts a Secret with users.
type userShard struct {
	*shard
	generation int
}

func newUserShard(t testing.TB) *userShard {
	t.Helper()
	s := &userShard{shard: newShard(t)}
	s.mountUsers()
	return s
}

func (s *userShard) mountUsers() {
	s.t.Helper()
	s.users = filepath.Join(s.dir, "users")
	makeDir(s.t, s.users)
	project(s.t, s.users, 0, nil)
}

// put replaces the users of the Secret.
func (s *userShard) put(users map[string]string) {
	s.t.Helper()
	s.generation++
	project(s.t, s.users, s.generation, users)
}

// logIn returns nil if memcached accepts the user.
func (s *userShard) logIn(user, password string) error {
	conn, err := net.Dial("tcp", s.address())
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	return protocol.Login(conn, user, password)
}

func (s *userShard) waitForUsers(what string, wanted func(agentwire.Users) bool) agentwire.Status {
	s.t.Helper()
	return s.waitFor(what, func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseServing && status.Secrets != nil && wanted(status.Secrets.Users)
	})
}

// wantLogin waits until memcached accepts a user, or no longer.
func (s *userShard) wantLogin(user, password string, accepted bool) {
	s.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = s.logIn(user, password); (err == nil) == accepted {
			return
		}
	}
	s.t.Fatalf("user %s: %v, want accepted: %t", user, err, accepted)
}

func (s *userShard) apply(more ...string) agentwire.Status {
	s.t.Helper()
	return (&tlsShard{shard: s.shard}).apply(more...)
}

func TestAuthenticationIsSwitchedOnAndOffWithItsItems(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := newUserShard(t)
	s.put(map[string]string{"app": "secret"})
	s.run()
	fill(t, s.address(), size)
	// Clients log in before they have to, and their passwords are not stored.
	if err := s.logIn("app", "secret"); err != nil {
		t.Errorf("a login that isn't required: %v", err)
	}
	if got := talk(t, s.address(), "mg login v\r\n"); got != "EN\r\n" {
		t.Errorf("a client reads the password: %q", got)
	}
	status := s.apply(wordsLogin...)
	if status.Start.Result != agentwire.StartWarm || status.Start.Items != size {
		t.Errorf("start %+v", status.Start)
	}
	s.wantLogin("app", "secret", true)
	s.wantLogin("app", "wrong", false)
	if _, err := protocol.At(s.address()).QueryStats(t.Context(), "stats"); err == nil {
		t.Error("a client reads statistics without a login")
	}
	wantProbes(t, s.shard)
	s.waitFor("the statistics", func(status agentwire.Status) bool { return status.Items == size })
	// A container starts with the users that it had.
	s.stopContainer()
	nextSecond(s.lastStop().Unix())
	wantWarm(t, s.run(), size)
	s.wantLogin("app", "secret", true)

	wantWarm(t, s.apply(), size)
	if n := count(t, s.address(), size); n != size {
		t.Errorf("%d items, want %d", n, size)
	}
}

func TestPasswordsRotateWithoutAFailedLogin(t *testing.T) {
	t.Parallel()
	s := newUserShard(t)
	s.annotate(agentwire.ArgumentsFile, s.arguments(wordsLogin...))
	s.put(map[string]string{"old": "one"})
	pid := s.run().PID
	var current atomic.Pointer[[2]string]
	current.Store(&[2]string{"old", "one"})
	var logins, failed atomic.Int64
	var clients sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				user := current.Load()
				if err := s.logIn(user[0], user[1]); err != nil {
					failed.Add(1)
					t.Log(err)
				}
				logins.Add(1)
			}
		})
	}
	for i := range 5 {
		was, next := current.Load(), [2]string{fmt.Sprintf("user-%d", i), fmt.Sprintf("password-%d", i)}
		s.put(map[string]string{was[0]: was[1], next[0]: next[1]})
		s.wantLogin(next[0], next[1], true)
		current.Store(&next)
		time.Sleep(200 * time.Millisecond) // clients that have read the former user
		s.put(map[string]string{next[0]: next[1]})
		s.wantLogin(was[0], was[1], false)
	}
	for logins.Load() < 20_000 {
		time.Sleep(10 * time.Millisecond)
	}
	close(done)
	clients.Wait()
	t.Logf("%d logins, %d failed", logins.Load(), failed.Load())
	if status := s.status(); failed.Load() > 0 || status.PID != pid {
		t.Errorf("%d of %d logins failed; %+v", failed.Load(), logins.Load(), status)
	}
}

func TestUsersThatCannotBeUsedChangeNothing(t *testing.T) {
	t.Parallel()
	s := newUserShard(t)
	s.annotate(agentwire.ArgumentsFile, s.arguments(wordsLogin...))
	s.put(map[string]string{"app": "secret"})
	pid := s.run().PID
	eight := map[string]string{}
	for i := range 8 {
		eight[fmt.Sprintf("user-%d", i)] = "password"
	}
	for _, c := range []struct {
		users map[string]string
		want  string
	}{
		{nil, "the Secret doesn't exist, or has no users"},
		{eight, "there are 8 users, with that of a binding; memcached reads at most 7"},
		{map[string]string{"App": "x"}, `user "App": use 1 to 64 of the characters`},
		{map[string]string{"app": ""}, "the password of user app is empty"},
		{map[string]string{"app": "two words"}, "contains a space or a control character"},
		{map[string]string{"app": "two\nlines"}, "contains a space or a control character"},
		{map[string]string{"app": strings.Repeat("x", 250)}, "have more than 249 bytes"},
	} {
		s.put(c.users)
		status := s.waitForUsers(c.want, func(u agentwire.Users) bool { return strings.Contains(u.Error, c.want) })
		if status.PID != pid || s.logIn("app", "secret") != nil {
			t.Errorf("%s: %+v, %v", c.want, status, s.logIn("app", "secret"))
		}
	}
	longest := strings.Repeat("x", 240)
	s.put(map[string]string{"app": longest + "\n", "z": "colon:and:utf-8:ü"})
	s.waitForUsers("valid users", func(u agentwire.Users) bool { return u.Error == "" })
	s.wantLogin("app", longest, true)
	s.wantLogin("z", "colon:and:utf-8:ü", true)
	s.wantLogin("app", "secret", false)
}

func TestAuthenticationIsNotSwitchedOnWithoutItsUsers(t *testing.T) {
	t.Parallel()
	s := newUserShard(t)
	pid := s.run().PID
	s.annotate(agentwire.ArgumentsFile, s.arguments(wordsLogin...))
	status := s.waitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
	wantContains(t, "the rejection", status.ArgumentsError, "the users can't be read: the Secret doesn't exist, or has no users")
	if status.PID != pid {
		t.Errorf("memcached was restarted: %+v", status)
	}
	s.put(map[string]string{"app": "secret"})
	s.wantLogin("app", "wrong", false)
	s.wantLogin("app", "secret", true)
}

// One packet without a login kills older versions.
func TestSetOfHugeSizeWithoutALoginDoesNotKillMemcached(t *testing.T) {
	t.Parallel()
	s := newUserShard(t)
	s.annotate(agentwire.ArgumentsFile, s.arguments(wordsLogin...))
	s.put(map[string]string{"app": "secret"})
	pid := s.run().PID
	for _, request := range []string{"set foo 0 0 2147483646\r\n", "set foo 0 0 -1\r\n", "mn\r\n", "\r\n", "\x80\x00\x00\x00"} {
		conn, err := net.Dial("tcp", s.address())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(request))
		_ = conn.Close()
		s.wantLogin("app", "secret", true)
	}
	if status := s.status(); status.PID != pid {
		t.Errorf("memcached was restarted: %+v", status)
	}
}

func TestPreflightAcceptsAuthenticationWithoutASecret(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.wantPreflight(s.arguments(append(wordsLogin, wordsClients...)...), newest)
}

// All that the agent does, with both: TLS with client certificates, and a login.
func TestPodsWithTLSAndLoginHandOverAndAreCopied(t *testing.T) {
	t.Parallel()
	const size = 10_000
	ca := testcert.NewCA("shards")
	old, next, r := newPair(t)
	words := append(wordsLogin, wordsClients...)
	for _, pod := range []*shard{old, next} {
		secured := &tlsShard{shard: pod}
		pod.secret, pod.loopbackPort = filepath.Join(pod.dir, "secret"), freePort(t)
		makeDir(t, pod.secret)
		secured.issue(ca, testcert.Options{Names: []string{"127.0.0.1"}})
		users := &userShard{shard: pod}
		users.mountUsers()
		users.put(map[string]string{"app": "secret", "other": "password"})
		pod.annotate(agentwire.ArgumentsFile, pod.arguments(words...))
	}
	old.run()
	wantProbes(t, old)
	files := newTLSFiles(t, ca, testcert.Options{Names: []string{"job"}})
	users := sharedDir(t)
	project(t, users, 0, map[string]string{"app": "wrong", "other": "password"})
	source := startCache(t, newest)
	items := someItems(11, size)
	maps.DeleteFunc(items, func(_ string, item entry) bool { return item.ttl >= 0 })
	source.put(items)
	bucket := memblob.OpenBucket(nil)
	save(t, bucket, saveTask(source))
	options := func() copy.Options {
		o := tlsOptions(t, files)
		o.UsersDir = users
		return o
	}
	task := withTLS(loadTask(source), old.address())
	task.TLS.ServerNames, task.Login = []string{"127.0.0.1"}, true
	outcome, err := copy.Load(t.Context(), bucket, task, options())
	if err != nil || outcome.Restored != int64(len(items)) {
		t.Fatalf("%+v, %v", outcome, err)
	}
	for r.address() != old.address() {
		time.Sleep(5 * time.Millisecond)
	}
	next.launch()
	next.waitFor("the pod to wait for the items", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseReceiving })
	old.signal(syscall.SIGTERM)
	status := next.waitFor("the items", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseServing })
	if status.Start.Result != agentwire.StartHandedOver || status.Start.Items != int64(len(items)) {
		t.Errorf("start %+v", status.Start)
	}
	if code := old.exit(); code != 0 {
		t.Error(errors.New(old.log.String()))
	}
	again := withTLS(saveTask(source), next.address())
	again.ID, again.Path, again.TLS.ServerNames, again.Login = "backup-2", "ns/cache/nightly-2", []string{"127.0.0.1"}, true
	if outcome, err = copy.Save(t.Context(), bucket, again, options()); err != nil || outcome.Items != int64(len(items)) {
		t.Errorf("%+v, %v", outcome, err)
	}
	again.Login = false
	refused := options()
	refused.ShardTimeout = time.Second
	again.ID = "backup-3"
	again.Path = "ns/cache/nightly-3"
	_, err = copy.Save(t.Context(), bucket, again, refused)
	if err == nil || !strings.Contains(err.Error(), "unauthenticated") {
		t.Errorf("without a login: %v", err)
	}
}
