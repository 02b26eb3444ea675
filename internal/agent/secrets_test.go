package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

const (
	withLogin = `["-m","64","-Y","users"]`
	withTLS   = `["-m","64","-Z"]`
)

func users(password string) map[string][]byte {
	return map[string][]byte{"shop": []byte(password + "\n")}
}

// issue returns a certificate for the shard.
func issue(ca *testcert.CA, o testcert.Options) map[string][]byte {
	o.Names = []string{testHost}
	crt, key := ca.Issue(o)
	return map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": ca.PEM()}
}

func fingerprintOf(t *testing.T, content map[string][]byte) string {
	t.Helper()
	c, err := parseCertificate(content["tls.crt"], content["tls.key"], content["ca.crt"], testHost, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return c.fingerprint()
}

// withUsers gives a pod a Secret with users.
func (p *pod) withUsers(content map[string][]byte) *testVolume {
	volume := p.secret(content)
	p.config.authVolume = volume.dir
	p.annotate(wire.ArgumentsFile, withLogin)
	return volume
}

// withCertificate gives a pod a Secret with a certificate.
func (p *pod) withCertificate(content map[string][]byte) *testVolume {
	volume := p.secret(content)
	p.config.tlsVolume = volume.dir
	p.annotate(wire.ArgumentsFile, withTLS)
	return volume
}

// awaitLog waits until the supervisor publishes a state and has logged a text so often.
func (p *pod) awaitLog(text string, times int) wire.Status {
	p.t.Helper()
	return p.awaitStatus(text, func(wire.Status) bool { return strings.Count(p.log.String(), text) >= times })
}

func TestRotatedPasswordsAreReadWithoutARestart(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		volume := p.withUsers(users("first"))
		before := p.run()
		volume.put(users("second"))
		after := p.awaitLog("memcached has read its users", 1)
		memcached := p.memcached.latest()
		memcached.change(func() {
			if memcached.users["shop"] != "second" || memcached.users[ownUser] == "" {
				t.Errorf("memcached has the users %v", memcached.users)
			}
		})
		if after.PID != before.PID || after.Secrets.Users.Error != "" {
			t.Errorf("%+v", after)
		}
		p.pass(time.Minute) // it reads nothing else
		if n := strings.Count(p.log.String(), "memcached has read its users"); n != 1 {
			t.Errorf("it has read them %d times", n)
		}
		p.finish()
	})
}

func TestUsersThatMemcachedDoesNotReadAreReportedAndTriedAgain(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		volume := p.withUsers(users("first"))
		p.memcached.set(func(b *behavior) { b.lazy = true })
		p.run()
		volume.put(users("second"))
		began := time.Now()
		status := p.awaitStatus("rejected", func(s wire.Status) bool { return s.Secrets.Users.Error != "" })
		if !strings.Contains(status.Secrets.Users.Error, "logging in as user shop: ") || time.Since(began) < reloadTimeout {
			t.Errorf("after %s: %+v", time.Since(began), status.Secrets)
		}
		volume.put(users("third")) // the error was that of the second
		began = time.Now()
		p.awaitStatus("changed", func(s wire.Status) bool { return s.Secrets.Users.Error == "" })
		if took := time.Since(began); took > pollInterval { //nolint:forbidigo // the fake time of a bubble
			t.Errorf("the error of other users stays for %s", took)
		}
		p.awaitStatus("rejected", func(s wire.Status) bool { return s.Secrets.Users.Error != "" })
		memcached := p.memcached.latest()
		memcached.change(func() { memcached.lazy = false })
		p.awaitStatus("accepted", func(s wire.Status) bool { return s.Secrets.Users.Error == "" })
		p.finish()
	})
}

func TestRotatedCertificateIsLoadedByTheRunningMemcached(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		ca := testcert.NewCA("shards")
		first, second := issue(ca, testcert.Options{}), issue(ca, testcert.Options{})
		volume := p.withCertificate(first)
		before := p.run()
		if got, want := before.Secrets.Certificate.SHA256, fingerprintOf(t, first); got != want {
			t.Errorf("it serves %s, want %s", got, want)
		}
		volume.put(second)
		want := fingerprintOf(t, second)
		after := p.awaitStatus("reloaded", func(s wire.Status) bool { return s.Secrets.Certificate.SHA256 == want })
		if c := after.Secrets.Certificate; after.PID != before.PID || c.Error != "" || c.RestartRequired != "" || c.Offered != want {
			t.Errorf("%+v", after)
		}
		// memcached keeps certificates of another key type beside the new one.
		volume.put(issue(ca, testcert.Options{RSA: true}))
		after = p.awaitStatus("reloaded", func(s wire.Status) bool { return s.Secrets.Certificate.SHA256 != want })
		if reason := after.Secrets.Certificate.RestartRequired; !strings.Contains(reason, "whose key is of type RSA") {
			t.Errorf("a restart is required for %q", reason)
		}
		p.annotate(wire.RestartFile, "certificate")
		after = p.awaitStatus("restarted", func(s wire.Status) bool { return s.Phase == wire.PhaseServing && s.Restart == "certificate" })
		if reason := after.Secrets.Certificate.RestartRequired; reason != "" {
			t.Errorf("after it, a restart is required for %q", reason)
		}
		p.finish()
	})
}

func TestCAThatIsRemovedRequiresARestart(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		ca, other := testcert.NewCA("shards"), testcert.NewCA("former clients")
		first, second := issue(ca, testcert.Options{}), issue(ca, testcert.Options{})
		first["ca.crt"] = append(slices.Clone(first["ca.crt"]), other.PEM()...)
		volume := p.withCertificate(first)
		p.annotate(wire.ArgumentsFile, `["-m","64","-Z","-o","ssl_verify_mode=2"]`)
		p.run()
		volume.put(second)
		want := fingerprintOf(t, second)
		status := p.awaitStatus("reloaded", func(s wire.Status) bool { return s.Secrets.Certificate.SHA256 == want })
		if reason := status.Secrets.Certificate.RestartRequired; !strings.Contains(reason, "CA CN=former clients, which ca.crt no longer contains") {
			t.Errorf("a restart is required for %q", reason)
		}
		// memcached would reject all clients.
		delete(first, "ca.crt")
		volume.put(first)
		status = p.awaitStatus("rejected", func(s wire.Status) bool { return s.Secrets.Certificate.Error != "" })
		if c := status.Secrets.Certificate; !strings.Contains(c.Error, "no ca.crt") || c.SHA256 != want {
			t.Errorf("%+v", c)
		}
		p.finish()
	})
}

func TestCertificateThatMemcachedDoesNotLoadLeavesThePreviousOne(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		ca := testcert.NewCA("shards")
		first, second := issue(ca, testcert.Options{}), issue(ca, testcert.Options{})
		volume := p.withCertificate(first)
		p.run()
		memcached := p.memcached.latest()
		memcached.change(func() { memcached.refresh = "ERROR no such file" })
		volume.put(second)
		status := p.awaitStatus("rejected", func(s wire.Status) bool { return s.Secrets.Certificate.Error != "" })
		if c := status.Secrets.Certificate; !strings.Contains(c.Error, "no such file") || c.SHA256 != fingerprintOf(t, first) {
			t.Errorf("%+v", c)
		}
		if c, err := p.tls.read(testHost, time.Now()); err != nil || c.fingerprint() != fingerprintOf(t, first) {
			t.Errorf("the files of memcached have another certificate: %v", err)
		}
		memcached.change(func() { memcached.refresh = "" })
		want := fingerprintOf(t, second)
		p.awaitStatus("reloaded", func(s wire.Status) bool {
			return s.Secrets.Certificate.SHA256 == want && s.Secrets.Certificate.Error == ""
		})
		p.finish()
	})
}

// What takes too long on an overloaded node says nothing about the Secret.
func TestSlowReloadRejectsNoSecret(t *testing.T) {
	ca := testcert.NewCA("shards")
	for name, c := range map[string]struct {
		prepare func(p *pod) (volume *testVolume)
		change  func() map[string][]byte
		loaded  string
	}{
		"of users":         {func(p *pod) *testVolume { return p.withUsers(users("first")) }, func() map[string][]byte { return users("second") }, "memcached has read its users"},
		"of a certificate": {func(p *pod) *testVolume { return p.withCertificate(issue(ca, testcert.Options{})) }, func() map[string][]byte { return issue(ca, testcert.Options{}) }, "memcached has loaded the certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				ca = testcert.NewCA("shards") // in the time of the bubble
				volume := c.prepare(p)
				p.run()
				resume := p.memcached.latest().hang()
				volume.put(c.change())
				p.pass(2*reloadTimeout + 2*loginTimeout)
				if s := p.status(); s.Secrets.Users.Error+s.Secrets.Certificate.Error != "" || !strings.Contains(p.log.String(), "trying again") {
					t.Errorf("%+v\n%s", s.Secrets, p.log)
				}
				resume()
				p.awaitLog(c.loaded, 1)
				p.finish()
			})
		})
	}
}

func TestResultOfAFormerMemcachedSaysNothingAboutTheNextOne(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.withCertificate(issue(testcert.NewCA("shards"), testcert.Options{}))
		p.withUsers(users("first"))
		p.annotate(wire.ArgumentsFile, `["-m","64","-Z","-Y","users"]`)
		p.run()
		former := p.memcached.latest().Process
		p.annotate(wire.RestartFile, "now")
		before := p.awaitStatus("restarted", func(s wire.Status) bool { return s.Restart == "now" })
		for _, err := range []error{errors.New("the connection was closed"), nil} {
			p.usersReloads <- usersReloadEnd{&usersReload{process: former, to: []user{{"former", "former"}}}, err}
			p.reloads <- reloadEnd{reload: &reload{process: former, to: p.tls.loaded}, served: "former", err: err}
			p.annotate(wire.StopFile, "later than "+time.Now().String())
			p.awaitStatus("later", func(s wire.Status) bool { return s.AnnouncedStop == p.info[wire.StopFile] })
		}
		if after := p.status(); *after.Secrets != *before.Secrets || slices.Contains(p.users.loaded, user{"former", "former"}) {
			t.Errorf("%+v, before %+v; users %v", after.Secrets, before.Secrets, p.users.loaded)
		}
		p.finish()
	})
}

func TestSecretThatCanNotBeUsedChangesNothing(t *testing.T) {
	t.Run("users", func(t *testing.T) {
		inPod(t, func(t *testing.T, p *pod) {
			volume := p.withUsers(users("first"))
			before := p.run()
			volume.put(map[string][]byte{"Shop": []byte("second")})
			status := p.awaitStatus("rejected", func(s wire.Status) bool { return s.Secrets.Users.Error != "" })
			memcached := p.memcached.latest()
			memcached.change(func() {
				if memcached.users["shop"] != "first" {
					t.Errorf("memcached has the users %v", memcached.users)
				}
			})
			if !strings.Contains(status.Secrets.Users.Error, `user "Shop": use 1 to 64`) || status.PID != before.PID {
				t.Errorf("%+v", status)
			}
			// The next container starts with the last users that could be used.
			p.finish()
			p.run()
			p.finish()
		})
	})
	t.Run("certificate", func(t *testing.T) {
		inPod(t, func(t *testing.T, p *pod) {
			first := issue(testcert.NewCA("shards"), testcert.Options{})
			volume := p.withCertificate(first)
			p.run()
			volume.put(map[string][]byte{"tls.crt": first["tls.crt"]})
			status := p.awaitStatus("rejected", func(s wire.Status) bool { return s.Secrets.Certificate.Error != "" })
			if c := status.Secrets.Certificate; c.Error != "the Secret has no tls.key" || c.SHA256 != fingerprintOf(t, first) || c.Offered != "" {
				t.Errorf("%+v", c)
			}
			p.finish()
			p.run()
			p.finish()
		})
	})
}

func TestSecretThatIsFixedLetsArgumentsApply(t *testing.T) {
	for name, c := range map[string]struct {
		arguments, want string
		fix             func() map[string][]byte
		volume          func(*config) *string
	}{
		"users": {withLogin, "the users can't be read: the Secret doesn't exist", func() map[string][]byte { return users("first") },
			func(c *config) *string { return &c.authVolume }},
		"certificate": {withTLS, "the certificate for TLS can't be used: the Secret doesn't exist",
			func() map[string][]byte { return issue(testcert.NewCA("shards"), testcert.Options{}) }, func(c *config) *string { return &c.tlsVolume }},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				volume := p.secret(nil)
				*c.volume(&p.config) = volume.dir
				p.run()
				p.memcached.latest().add(7)
				p.annotate(wire.ArgumentsFile, c.arguments)
				status := p.awaitStatus("rejected", func(s wire.Status) bool { return s.ArgumentsError != "" })
				if !strings.Contains(status.ArgumentsError, c.want) || status.PID != 1 {
					t.Errorf("%+v", status)
				}
				volume.put(c.fix())
				status = p.awaitStatus("changed", func(s wire.Status) bool { return s.Phase == wire.PhaseServing && len(s.Arguments) > 2 })
				p.wantStart(status, wire.StartWarm, 7, "")
				if status.ArgumentsError != "" {
					t.Errorf("%+v", status)
				}
				p.finish()
			})
		})
	}
}

func TestFirstContainerWaitsForItsSecrets(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		volume := p.withUsers(nil)
		began := time.Now()
		err := p.create()
		if err == nil || !strings.Contains(err.Error(), "the users can't be read: the Secret doesn't exist, or has no users") ||
			!strings.Contains(err.Error(), "the kubelet has not mounted it within 45s") || time.Since(began) < secretTimeout {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		mounted := time.AfterFunc(secretTimeout/2, func() { volume.put(users("first")) })
		defer mounted.Stop()
		p.run()
		p.finish()
	})
}

func TestUsersThatMemcachedWouldNotReadAsTheyAre(t *testing.T) {
	many := []user{}
	for range maxUsers + 1 {
		many = append(many, user{"a", "b"})
	}
	for want, users := range map[string][]user{
		"":                                {{"shop.web_1-a", "p:ss"}},
		"has no users":                    nil,
		"memcached reads at most 7":       many,
		"use 1 to 64 of the characters":   {{"AGENT", "b"}},
		"the password of user a is empty": {{"a", ""}},
		"contains a space":                {{"a", "b c"}},
		"or a control character":          {{"a", "b\x7f"}},
		"have more than 249 bytes":        {{"a", strings.Repeat("b", 249)}},
	} {
		if err := checkUsers(users); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80v: %v, want %q", users, err, want)
		}
	}
}
