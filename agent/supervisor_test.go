package main

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// What a running memcached holds is asked of real ones, in test/process.
func TestWhatIsNotedOfAStopThatCannotAsk(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	tried, former := []string{"-t", "2"}, []string{"-t", "1"}
	for name, c := range map[string]struct {
		supervisor supervisor
		items      int64
		arguments  []string
	}{
		"another end for a stop that is under way": {
			supervisor{phase: agentapi.PhaseRestarting, afterExit: func() {}, lastNote: lastStop{Items: 7}, arguments: tried}, 7, tried},
		"a stop while it starts with what was saved": {
			supervisor{phase: agentapi.PhaseStarting, before: saved{file: &savedFile{stopped: at.Unix()}, last: lastStop{At: at, Items: 9}}, arguments: tried}, 9, tried},
		"a stop while arguments are tried": {
			supervisor{phase: agentapi.PhaseStarting, arguments: tried, fallback: &former}, 0, former},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.supervisor
			s.data, s.now, s.log = t.TempDir(), func() time.Time { return at }, slog.New(slog.DiscardHandler)
			s.note("token")
			got := readLastStop(s.data)
			if got.Items != c.items || !slices.Equal(got.Arguments, c.arguments) || got.Announced != "token" || !got.At.Equal(at) {
				t.Errorf("noted %+v", got)
			}
		})
	}
}
