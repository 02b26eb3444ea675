package process

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func TestAuthenticationIsSwitchedOnAndOffWithItsItems(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := pods.NewUserShard(t)
	s.Put(map[string]string{"app": "secret"})
	s.Run()
	pods.Fill(t, s.Address(), size)
	// Clients log in before they have to, and their passwords are not stored.
	if err := s.LogIn("app", "secret"); err != nil {
		t.Errorf("a login that isn't required: %v", err)
	}
	if got := pods.Talk(t, s.Address(), "mg login v\r\n"); got != "EN\r\n" {
		t.Errorf("a client reads the password: %q", got)
	}
	status := s.Apply(pods.WordsLogin...)
	if status.Start.Result != agentwire.StartWarm || status.Start.Items != size {
		t.Errorf("start %+v", status.Start)
	}
	s.WantLogin("app", "secret", true)
	s.WantLogin("app", "wrong", false)
	if _, err := protocol.At(s.Address()).QueryStats(t.Context(), "stats"); err == nil {
		t.Error("a client reads statistics without a login")
	}
	wantProbes(s.Shard)
	s.WaitFor("the statistics", func(status agentwire.Status) bool { return status.Items == size })
	// A container starts with the users that it had.
	s.StopContainer()
	pods.WantWarm(t, s.Run(), size)
	s.WantLogin("app", "secret", true)

	// A configuration that only lacks the field, such as that of an operator of an older release, changes nothing.
	pid := s.Status().PID
	s.Annotate(agentwire.ArgumentsFile, s.Arguments())
	status = s.WaitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
	pods.WantContains(t, "the rejection", status.ArgumentsError, "clients would no longer have to log in")
	if _, err := protocol.At(s.Address()).QueryStats(t.Context(), "stats"); err == nil || status.PID != pid || status.Items != size {
		t.Errorf("without a login: %v; %+v", err, status)
	}
	s.StopContainer()
	pods.WantWarm(t, s.Run(), size)
	s.WantLogin("app", "secret", true)

	s.Annotate(agentwire.ProtectionFile, `{"auth":"Disabled"}`)
	pods.WantWarm(t, s.WaitFor("the new arguments", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseServing && !slices.Contains(status.Arguments, pods.WordsLogin[0])
	}), size)
	if n := pods.Count(t, s.Address(), size); n != size {
		t.Errorf("%d items, want %d", n, size)
	}
}

func TestPasswordsRotateWithoutAFailedLogin(t *testing.T) {
	t.Parallel()
	s := pods.NewUserShard(t)
	s.Annotate(agentwire.ArgumentsFile, s.Arguments(pods.WordsLogin...))
	s.Put(map[string]string{"old": "one"})
	pid := s.Run().PID
	var current atomic.Pointer[[2]string]
	current.Store(&[2]string{"old", "one"})
	var logins [4]atomic.Int64
	var failed atomic.Int64
	// await waits until each client has logged in so many times more.
	await := func(more int64) {
		t.Helper()
		for i := range logins {
			if seen := logins[i].Load(); !pods.Eventually(func() bool { return logins[i].Load() >= seen+more }) {
				t.Fatalf("client %d has logged in %d times", i, logins[i].Load())
			}
		}
	}
	var clients sync.WaitGroup
	done := make(chan struct{})
	for i := range logins {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				user := current.Load()
				if err := s.LogIn(user[0], user[1]); err != nil {
					failed.Add(1)
					t.Log(err)
				}
				logins[i].Add(1)
			}
		})
	}
	for i := range 5 {
		was, next := current.Load(), [2]string{fmt.Sprintf("user-%d", i), fmt.Sprintf("password-%d", i)}
		s.Put(map[string]string{was[0]: was[1], next[0]: next[1]})
		s.WantLogin(next[0], next[1], true)
		current.Store(&next)
		await(1) // it has finished the login for which it read the former user
		s.Put(map[string]string{next[0]: next[1]})
		s.WantLogin(was[0], was[1], false)
	}
	await(100)
	close(done)
	clients.Wait()
	if status := s.Status(); failed.Load() > 0 || status.PID != pid {
		t.Errorf("%d logins failed; %+v", failed.Load(), status)
	}
}
