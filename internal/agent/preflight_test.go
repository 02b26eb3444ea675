package agent

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// test/process checks real images.
func TestPreflightRejectsInvalidFlags(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"an unknown flag":        {"-nonsense"},
		"unquoted arguments":     {"-termination-log", log, "-arguments", `["-m",`, `"64"]`},
		"an unexpected argument": {"-termination-log", log, "memcached"},
	} {
		err := Command("dev", append([]string{"preflight"}, args...), io.Discard)
		if err == nil || ExitCode(err) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPreflightRejectsOnlyWhatMemcachedRejects(t *testing.T) {
	for name, c := range map[string]struct {
		fault     func(*behavior)
		arguments string
		want      string
		slow      bool
	}{
		"good arguments":                 {nil, `["-m","64"]`, "", false},
		"no arguments":                   {nil, "", "", false},
		"TLS and users without a Secret": {nil, `["-m","64","-Z","-Y","x"]`, "", false},
		"arguments that are no JSON":     {nil, "-m 64", "the arguments are not a JSON array of strings", false},
		"memcached exits": {func(b *behavior) { b.exits = func([]string) string { return "not today" } }, "",
			"memcached 1.6.45 does not start with its arguments: memcached exited unexpectedly with code 71: not today", false},
		"memcached never listens":  {func(b *behavior) { b.deaf = always }, "", "memcached did not respond within 1m0s", true},
		"memcached is killed":      {func(b *behavior) { b.killed = always }, "", "memcached was killed and did not respond", true},
		"memcached never responds": {func(b *behavior) { b.silent = always }, "", "memcached did not respond within 1m0s", true},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				if c.fault != nil {
					p.memcached.set(c.fault)
				}
				err := checkImage(process.Binary{Path: "memcached", Version: "1.6.45", Start: p.memcached.start}, c.arguments)
				if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if code := ExitCode(err); err != nil && c.slow != (code == wire.ExitTimedOut) {
					t.Errorf("exit code %d", code)
				}
			})
		})
	}
}

func TestCallWithTimeoutReturnsAnErrorIfTheFunctionHangs(t *testing.T) {
	never := make(chan bool)
	err := callWithTimeout(time.Millisecond, func() error { <-never; return nil })
	if !process.IsSlow(err) || !strings.Contains(err.Error(), "did not respond or exit within 1ms") {
		t.Errorf("error %v", err)
	}
	failed := errors.New("failed")
	if err := callWithTimeout(time.Minute, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}
