package secrets

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/internal/testvolume"
)

// What takes too long on an overloaded node, or while clients use all connections, says nothing about the Secret.
func TestChangedSecretIsLoaded(t *testing.T) {
	errAnswer := &protocol.ServerError{Message: "no such file"}
	for name, c := range map[string]struct {
		// fault begins before the change, and lasts as long as the test waits.
		fault func(m *memcached) (fixed func())
		// wait is how long, and failure what the agent reports then, of a certificate and of users.
		wait                time.Duration
		certificate, users  string
		keepsFormer, unsaid bool
	}{
		"at once": {fault: func(*memcached) func() { return func() {} }, wait: soon},
		"when memcached no longer answers with an error": {func(m *memcached) func() {
			m.refresh, m.lazy = errAnswer, true
			return func() { m.refresh, m.lazy = nil, false }
		}, loadTimeout + soon, "no such file", "logging in as user shop: ", true, false},
		"when a slow memcached answers": {func(m *memcached) func() {
			m.hung = make(chan struct{})
			return func() { close(m.hung) }
		}, 2*loadTimeout + soon, "", "", true, true},
		"when clients no longer use all connections": {func(m *memcached) func() {
			m.full.Store(true)
			return func() { m.full.Store(false) }
		}, loadTimeout + soon, "", "", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := testcert.NewCA("shards")
				first, second := issue(ca, testcert.Options{}), issue(ca, testcert.Options{})
				certificates, users := testvolume.New(t, first), testvolume.New(t, usersWith("first"))
				m := start(t, Volumes{certificates.Dir, users.Dir}, "-Z", "-Y", "users")
				fixed := c.fault(m)
				certificates.Put(second)
				users.Put(usersWith("second"))
				m.poll(c.wait)
				status := m.Status()
				// With other files, memcached would reject all connections after its next attempt.
				if written, err := m.Set.certificate.restore(m.dir, time.Now()); c.certificate != "" && (err != nil || !isSame(written, parse(t, first))) {
					t.Errorf("the files of memcached have another certificate: %v", err)
				}
				if c.keepsFormer && status.Certificate.SHA256 != parse(t, first).fingerprint() || !strings.Contains(status.Certificate.Error, c.certificate) || !strings.Contains(status.Users.Error, c.users) ||
					c.unsaid && (status.Certificate.Error+status.Users.Error != "" || !strings.Contains(m.log.String(), "trying again")) {
					t.Errorf("after %s: %+v\n%s", c.wait, status, m.log)
				}
				fixed()
				m.poll(loadTimeout + soon)
				status = m.Status()
				want := parse(t, second).fingerprint()
				if s := status.Certificate; s.Error != "" || s.RestartRequired != "" || s.SHA256 != want || s.Offered != parse(t, second).identity() {
					t.Errorf("%+v\n%s", s, m.log)
				}
				if status.Users.Error != "" || m.users["shop"] != "second" {
					t.Errorf("%+v, memcached has the users %v\n%s", status.Users, m.users, m.log)
				}
				m.log.Reset()
				if m.poll(time.Minute); m.log.Len() > 0 {
					t.Errorf("then it loads more:\n%s", m.log)
				}
			})
		})
	}
}

// Otherwise the former password would fail, or the new one work, as memcached can have read it.
func TestSecretThatIsChangedBackDuringASlowLoadIsLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		volume := testvolume.New(t, usersWith("first"))
		m := start(t, Volumes{Users: volume.Dir}, "-Y", "users")
		m.hung = make(chan struct{})
		volume.Put(usersWith("second"))
		m.poll(soon)
		volume.Put(usersWith("first"))
		m.poll(loadTimeout + soon)
		close(m.hung)
		if m.poll(loadTimeout + soon); m.users["shop"] != "first" || m.Status().Users.Error != "" {
			t.Errorf("memcached has the users %v; %+v\n%s", m.users, m.Status().Users, m.log)
		}
	})
}

func TestErrorOfOtherUsersDoesNotStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		volume := testvolume.New(t, usersWith("first"))
		m := start(t, Volumes{Users: volume.Dir}, "-Y", "users")
		m.lazy = true
		volume.Put(usersWith("second"))
		if m.poll(loadTimeout + soon); m.Status().Users.Error == "" {
			t.Fatal("memcached does not read the second ones, without an error")
		}
		volume.Put(usersWith("third"))
		if m.poll(0); m.Status().Users.Error != "" {
			t.Errorf("of the third: %+v", m.Status().Users)
		}
	})
}

func TestResultOfAFormerMemcachedSaysNothingAboutTheNextOne(t *testing.T) {
	for _, refresh := range []error{nil, errors.New("the connection was closed")} {
		synctest.Test(t, func(t *testing.T) {
			ca := testcert.NewCA("shards")
			volume := testvolume.New(t, issue(ca, testcert.Options{}))
			m := start(t, Volumes{Certificate: volume.Dir}, "-Z")
			m.refresh, m.hung = refresh, make(chan struct{})
			volume.Put(issue(ca, testcert.Options{}))
			m.poll(0)
			m.restart("-Z")
			before := *m.Status()
			close(m.hung)
			if m.poll(0); *m.Status() != before || strings.Contains(m.log.String(), "load") {
				t.Errorf("%+v, before %+v\n%s", m.Status(), before, m.log)
			}
		})
	}
}

// The kubelet removes the files when a Secret is deleted.
func TestDeletedSecretRevokesNoUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := testvolume.New(t, usersWith("first"))
		m := start(t, Volumes{Users: users.Dir}, "-Y", "users")
		users.Put(nil)
		m.poll(soon)
		if u := m.Status().Users; u.Error == "" || m.users["shop"] != "first" {
			t.Errorf("%+v, memcached has the users %v", u, m.users)
		}
		if m.restart("-Y", "users"); m.users["shop"] != "first" {
			t.Errorf("after a restart memcached has the users %v", m.users)
		}
	})
}

// The operator restarts memcached once for what the Secret offers: it keeps accepting a CA that was removed.
func TestOtherCAsAreAnotherOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testcert.NewCA("shards")
		both := issue(ca, testcert.Options{})
		volume := testvolume.New(t, both)
		m := start(t, Volumes{Certificate: volume.Dir}, "-Z")
		before := m.Status().Certificate
		more := maps.Clone(both)
		more["ca.crt"] = slices.Concat(both["ca.crt"], testcert.NewCA("other").PEM())
		volume.Put(more)
		m.poll(soon)
		if after := m.Status().Certificate; after.Offered == before.Offered || after.Offered == "" || after.SHA256 != before.SHA256 {
			t.Errorf("%+v, before %+v", after, before)
		}
	})
}

func TestSecretThatCanNotBeUsedChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := issue(testcert.NewCA("shards"), testcert.Options{})
		certificates, users := testvolume.New(t, first), testvolume.New(t, usersWith("first"))
		m := start(t, Volumes{certificates.Dir, users.Dir}, "-Z", "-Y", "users")
		certificates.Put(map[string][]byte{"tls.crt": first["tls.crt"]})
		users.Put(map[string][]byte{"Shop": []byte("second")})
		for range 2 {
			m.poll(soon)
			if c := m.Status().Certificate; c.Error != "the Secret has no tls.key" || c.SHA256 != parse(t, first).fingerprint() || c.Offered != "" {
				t.Errorf("%+v", c)
			}
			if u := m.Status().Users; !strings.Contains(u.Error, `user "Shop": use 1 to 64`) || m.users["shop"] != "first" {
				t.Errorf("%+v, memcached has the users %v", u, m.users)
			}
			m.restart("-Z", "-Y", "users") // with the last ones that could be used
		}
		for want, volumes := range map[string]Volumes{
			"the certificate can't be used: the Secret has no tls.key": {Certificate: certificates.Dir},
			`the users can't be used: user "Shop"`:                     {Users: users.Dir},
			"no Secret is mounted":                                     {},
		} {
			_, err := NewSet(volumes, t.TempDir(), testHost, 11215, discard).Prepare([]string{"-Z", "-Y", "users"}, time.Now())
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a memcached that has none of before starts with %v, want %q", err, want)
			}
		}
	})
}

func TestArgumentsWaitForTheirSecrets(t *testing.T) {
	empty := testvolume.New(t, nil)
	s := NewSet(Volumes{empty.Dir, empty.Dir}, t.TempDir(), testHost, 11215, discard)
	s.Poll(time.Now())
	const (
		noCertificate = "the certificate can't be used: the Secret doesn't exist, or has no tls.crt"
		noUsers       = "the users can't be used: the Secret doesn't exist, or has no users"
	)
	for _, c := range []struct{ desired, current, want string }{
		{"-m 64", "-m 64", ""},
		{"-Z", "-m 64", noCertificate},
		{"-Z -m 65", "-Z", ""}, // memcached has loaded one
		{"-Y users", "-Z", noUsers},
		{"-Z -Y users", "", noCertificate + "\n" + noUsers},
		{"", "-Z -Y users", ""},
	} {
		if got := s.Problem(strings.Fields(c.desired), strings.Fields(c.current)); (got == nil) != (c.want == "") || got != nil && got.Error() != c.want {
			t.Errorf("from %q to %q: %v, want %q", c.current, c.desired, got, c.want)
		}
	}
}

func TestFirstContainerWaitsForItsSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		volume := testvolume.New(t, nil)
		s := NewSet(Volumes{Users: volume.Dir}, t.TempDir(), testHost, 11215, discard)
		began := time.Now()
		err := s.Await([]string{"-Y", "users"}, nil)
		if err == nil || !strings.Contains(err.Error(), "the kubelet has not mounted it within 45s") || time.Since(began) < mountTimeout {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		terminations := make(chan os.Signal, 1)
		terminations <- os.Interrupt
		if err := s.Await([]string{"-Y", "users"}, terminations); err == nil || strings.Contains(err.Error(), "45s") {
			t.Errorf("a container that is terminated: %v", err)
		}
		mounted := time.AfterFunc(mountTimeout/2, func() { volume.Put(usersWith("first")) })
		defer mounted.Stop()
		if err := s.Await([]string{"-Y", "users"}, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestMemcachedStartsWithThrowawaySecrets(t *testing.T) {
	s, err := Throwaway(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	start, err := s.Prepare([]string{"-Z", "-o", "ssl_verify_mode=2", "-Y", "users"}, time.Now())
	if err != nil || len(start.users.list) != 1 {
		t.Errorf("%+v, %v", start, err)
	}
}

func TestLinesHaveTheListenersOfTheMode(t *testing.T) {
	const loaded = "-o ssl_chain_cert=/data/tls.pem,ssl_key=/data/tls.pem"
	for words, want := range map[string]struct{ line, own, dryRun string }{
		"-p 11211 -m 64":    {"-p 11211 -m 64", "127.0.0.1:11211", "-p 11211 -m 64 -l 127.0.0.1:99 -U 0"},
		"-p 11211 -m 64 -Z": {"-p 11211 -m 64 -Z " + loaded + " -l *:11211 -l notls:127.0.0.1:11215", "127.0.0.1:11215", "-p 11211 -m 64 -Z " + loaded + " -l notls:127.0.0.1:99 -U 0"},
		"-p 11211 -Z -l *:11211 -l notls:*:11211": {
			"-p 11211 -Z " + loaded + " -l 127.0.0.2:11215 -l notls:127.0.0.1:11215", "127.0.0.1:11215", "-p 11211 -Z " + loaded + " -l notls:127.0.0.1:99 -U 0"},
		"-Z -o ssl_verify_mode=2,ssl_session_cache": {
			"-Z -o ssl_verify_mode=2,ssl_session_cache " + loaded + ",ssl_ca_cert=/data/ca.pem -l *:11211 -l notls:127.0.0.1:11215", "127.0.0.1:11215",
			"-Z -o ssl_verify_mode=2,ssl_session_cache " + loaded + ",ssl_ca_cert=/data/ca.pem -l notls:127.0.0.1:99 -U 0"},
		"-Y users -m 64": {"-Y /data/users -m 64", "127.0.0.1:11211", "-Y /data/users -m 64 -l 127.0.0.1:99 -U 0"},
	} {
		start := Start{arguments: strings.Fields(words), dir: "/data", loopbackPort: 11215}
		line, server := start.Line()
		dryRun, own := start.DryRunLine(99)
		if !slices.Equal(line, strings.Fields(want.line)) || server.Address != want.own || !slices.Equal(dryRun, strings.Fields(want.dryRun)) || own.Address != "127.0.0.1:99" {
			t.Errorf("%s: %q and %s, dry run %q and %s; want %+v", words, line, server, dryRun, own, want)
		}
	}
	if _, server := (Start{users: &users{password: "own"}}).Line(); server.User != ownUser || server.Password != "own" {
		t.Errorf("the agent logs in as %q", server.User)
	}
}

func TestUsersThatMemcachedWouldNotReadAsTheyAre(t *testing.T) {
	many := []user{}
	for range maxUsers + 1 {
		many = append(many, user{"a", "b"})
	}
	for want, list := range map[string][]user{
		"":                                {{"shop.web_1-a", "p:ss"}},
		"has no users":                    nil,
		"memcached reads at most 7":       many,
		"use 1 to 64 of the characters":   {{"aGENt", "b"}},
		"the password of user a is empty": {{"a", ""}},
		"contains a space":                {{"a", "b c"}},
		"or a control character":          {{"a", "b\x7f"}},
		"have more than 249 bytes":        {{"a", strings.Repeat("b", 249)}},
		"has the entry username":          {{"username", "shop"}, {"password", "secret"}},
		"has the entry password":          {{"shop", "secret"}, {"password", "secret"}},
	} {
		if _, err := validUsers(list, "own"); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80v: %v, want %q", list, err, want)
		}
	}
}

// The users' file is read back when the Secret no longer exists.
func TestPasswordThatEndsWithASpaceOfUnicodeIsReadBack(t *testing.T) {
	dir := t.TempDir()
	for _, password := range []string{"a\u00a0", "a\u0085", "\u2003a"} {
		written, err := validUsers([]user{{"shop", password}}, "own")
		if err != nil {
			t.Fatal(err)
		}
		if err := write(dir, written); err != nil {
			t.Fatal(err)
		}
		if read, err := restoreUsers(dir, "own"); err != nil || !slices.Equal(read.list, written.list) {
			t.Errorf("%q is read as %+v, %v", password, read, err)
		}
	}
}

func TestRemovedUserIsLoadedOnceMemcachedRejectsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := usersWith("first")
		both["former"] = []byte("secret")
		volume := testvolume.New(t, both)
		m := start(t, Volumes{Users: volume.Dir}, "-Y", "users")
		m.lazy = true
		volume.Put(usersWith("first"))
		if m.poll(loadTimeout + soon); !strings.Contains(m.Status().Users.Error, "memcached still accepts the former login of user former") {
			t.Errorf("memcached has not read the users: %+v\n%s", m.Status().Users, m.log)
		}
		m.lazy = false
		if m.poll(loadTimeout + soon); m.Status().Users.Error != "" {
			t.Errorf("%+v\n%s", m.Status().Users, m.log)
		}
	})
}
