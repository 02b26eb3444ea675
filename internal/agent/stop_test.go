package agent

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// test/process covers stops of a serving memcached.
func TestStopOfAMemcachedThatDoesNotServeIsRecorded(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	onTrial, former := []string{"-t", "2"}, []string{"-t", "1"}
	for name, c := range map[string]struct {
		supervisor supervisor
		items      int64
		arguments  []string
	}{
		"a second reason for a stop in progress": {
			supervisor{phase: wire.PhaseRestarting, afterExit: func() {}, lastStop: lastStop{Items: 7}, arguments: onTrial}, 7, onTrial},
		"a stop while memcached loads saved items": {
			supervisor{phase: wire.PhaseStarting, saved: savedData{file: &metaFile{stopped: at.Unix()}, last: lastStop{At: at, Items: 9}}, arguments: onTrial}, 9, onTrial},
		"a stop while arguments are on trial": {
			supervisor{phase: wire.PhaseStarting, arguments: onTrial, fallback: &former}, 0, former},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.supervisor
			s.dataDir, s.now, s.log = t.TempDir(), func() time.Time { return at }, slog.New(slog.DiscardHandler)
			s.recordStop("token")
			got := readLastStop(s.dataDir)
			if got.Items != c.items || !slices.Equal(got.Arguments, c.arguments) || got.Announced != "token" || !got.At.Equal(at) {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}
