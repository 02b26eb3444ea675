package agent

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/secrets"
	"github.com/memcached-operator/memcached-operator/internal/agent/serve"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/testvolume"
)

// test/process covers stops of a serving memcached.
func TestStopOfAMemcachedThatDoesNotServeIsRecorded(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	onTrial, former, known := []string{"-t", "2"}, []string{"-t", "1"}, map[string][]byte{"name": nil}
	for name, c := range map[string]struct {
		supervisor supervisor
		items      int64
		arguments  []string
	}{
		"a second reason for a stop in progress": {
			supervisor{phase: wire.PhaseRestarting, afterExit: thenFinish, lastStop: datadir.Stop{Items: 7, State: known}, arguments: onTrial}, 7, onTrial},
		"a stop while memcached loads saved items": {
			supervisor{phase: wire.PhaseStarting, saved: datadir.Saved{File: &datadir.MetaFile{Stopped: at.Unix()}, Last: datadir.Stop{At: at, Items: 9, State: known}}, arguments: onTrial}, 9, onTrial},
		"a stop while arguments are on trial, without items": {
			supervisor{phase: wire.PhaseStarting, saved: datadir.Saved{Last: datadir.Stop{At: at, Items: 9, State: known}}, arguments: onTrial, fallback: &former}, 0, former},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.supervisor
			s.dataDir, s.now, s.log = t.TempDir(), func() time.Time { return at }, slog.New(slog.DiscardHandler)
			s.recordStop("token")
			saved, err := datadir.Read(s.dataDir)
			if err != nil {
				t.Fatal(err)
			}
			got := saved.Last
			if got.Items != c.items || len(got.State) > 0 != (c.items > 0) || !slices.Equal(got.Arguments, c.arguments) || got.Announced != "token" || !got.At.Equal(at) {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}

// The operator may be removed after it has announced a stop.
func TestAnnouncedStopAges(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	volume := testvolume.New(t, nil)
	s := supervisor{config: config{podInfoDir: volume.Dir}, secrets: &secrets.Set{}, history: testHistory(), states: &serve.States{}, now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler)}
	s.publish()
	poll := func(stop string) string {
		volume.Put(map[string][]byte{wire.StopFile: []byte(stop), wire.ArgumentsFile: nil, wire.ProtectionFile: nil, wire.RestartFile: nil})
		s.pollAnnotations()
		return s.states.Load().Status.AnnouncedStop
	}
	for _, c := range []struct {
		after      time.Duration
		stop, want string
	}{
		{0, "a", "a"},
		{wire.AnnouncementTimeout, "a", "a"},
		{wire.AnnouncementTimeout + 1, "a", ""},
		{wire.AnnouncementTimeout + 2, "b", "b"},
		{2*wire.AnnouncementTimeout + 3, "b", ""},
	} {
		now = time.Unix(1_800_000_000, 0).Add(c.after)
		if got := poll(c.stop); got != c.want {
			t.Errorf("after %s the announced stop %q is %q, want %q", c.after, c.stop, got, c.want)
		}
	}
}
