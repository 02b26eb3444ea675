package agent

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/internal/testvolume"
)

func users(password string) map[string][]byte {
	return map[string][]byte{"shop": []byte(password + "\n")}
}

// certificate returns one for the shard.
func certificate(ca *testcert.CA, o testcert.Options) map[string][]byte {
	o.Names = []string{testHost}
	crt, key := ca.Issue(o)
	return map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": ca.PEM()}
}

func TestChangedSecretsAreLoadedWithoutARestart(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		ca := testcert.NewCA("shards")
		certificates, logins := testvolume.New(t, certificate(ca, testcert.Options{})), testvolume.New(t, users("first"))
		p.config.secretVolumes.Certificate, p.config.secretVolumes.Users = certificates.Dir, logins.Dir
		p.annotate(wire.ArgumentsFile, `["-m","64","-Z","-Y","users"]`)
		before := p.run()
		memcached := p.memcached.latest()
		certificates.Put(certificate(ca, testcert.Options{RSA: true}))
		logins.Put(users("second"))
		after := p.awaitStatus("loaded", func(s wire.Status) bool {
			c := s.Secrets.Certificate
			return c.SHA256 != before.Secrets.Certificate.SHA256 && strings.Contains(p.log.String(), "memcached has loaded the users")
		})
		if c := after.Secrets.Certificate; after.PID != before.PID || !strings.Contains(c.RestartRequired, "whose key is of type RSA") {
			t.Errorf("%+v", after)
		}
		memcached.change(func() {
			if memcached.users["shop"] != "second" {
				t.Errorf("memcached has the users %v", memcached.users)
			}
		})
		p.annotate(wire.RestartFile, "certificate")
		after = p.awaitStatus("restarted", func(s wire.Status) bool { return s.Phase == wire.PhaseServing && s.Restart == "certificate" })
		if reason := after.Secrets.Certificate.RestartRequired; reason != "" {
			t.Errorf("after it, a restart is required for %q", reason)
		}
		p.finish()
	})
}

func TestSecretThatIsFixedLetsArgumentsApply(t *testing.T) {
	for name, c := range map[string]struct {
		arguments, want string
		fix             func() map[string][]byte
		volume          func(*config) *string
	}{
		"users": {`["-m","64","-Y","users"]`, "the users can't be used: the Secret doesn't exist", func() map[string][]byte { return users("first") },
			func(c *config) *string { return &c.secretVolumes.Users }},
		"certificate": {`["-m","64","-Z"]`, "the certificate can't be used: the Secret doesn't exist",
			func() map[string][]byte { return certificate(testcert.NewCA("shards"), testcert.Options{}) },
			func(c *config) *string { return &c.secretVolumes.Certificate }},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				volume := testvolume.New(t, nil)
				*c.volume(&p.config) = volume.Dir
				p.run()
				p.memcached.latest().add(7)
				p.annotate(wire.ArgumentsFile, c.arguments)
				status := p.awaitStatus("rejected", func(s wire.Status) bool { return s.ArgumentsError != "" })
				if !strings.Contains(status.ArgumentsError, c.want) || status.PID != 1 {
					t.Errorf("%+v", status)
				}
				volume.Put(c.fix())
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
		volume := testvolume.New(t, nil)
		p.config.secretVolumes.Users = volume.Dir
		p.annotate(wire.ArgumentsFile, `["-m","64","-Y","users"]`)
		if err := p.create(); err == nil || !strings.Contains(err.Error(), "the users can't be used: the Secret doesn't exist, or has no users") {
			t.Error(err)
		}
		mounted := time.AfterFunc(time.Second, func() { volume.Put(users("first")) })
		defer mounted.Stop()
		p.run()
		p.finish()
	})
}

// An operator that doesn't know spec.auth writes arguments without it. The agent has the last word.
func TestLoginIsRequiredUntilTheSpecStatesOtherwise(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.config.secretVolumes.Users = testvolume.New(t, users("first")).Dir
		p.annotate(wire.ArgumentsFile, `["-m","64","-Y","users"]`)
		first := p.run()
		p.memcached.latest().add(7)
		p.annotate(wire.ArgumentsFile, `["-m","64"]`)
		status := p.awaitStatus("rejected", func(s wire.Status) bool { return s.ArgumentsError != "" })
		if !strings.Contains(status.ArgumentsError, "clients would no longer have to log in") || status.PID != first.PID || len(status.Arguments) != 4 {
			t.Errorf("%+v", status)
		}
		p.memcached.latest().end(syscall.WaitStatus(syscall.SIGKILL))
		p.wantExit("killed")
		status = p.run()
		if len(status.Arguments) != 4 || !strings.Contains(status.ArgumentsError, "clients would no longer have to log in") {
			t.Errorf("after a crash: %+v", status)
		}
		p.memcached.latest().add(5)
		p.annotate(wire.ProtectionFile, `{"auth":"Disabled"}`)
		status = p.awaitStatus("changed", func(s wire.Status) bool { return s.Phase == wire.PhaseServing && len(s.Arguments) == 2 })
		p.wantStart(status, wire.StartWarm, 5, "")
		if status.ArgumentsError != "" {
			t.Errorf("%+v", status)
		}
		p.finish()
	})
}
