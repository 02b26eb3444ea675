package memcached

import (
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// A status that the API server rejects would never be written, and with it everything else
// that the status reports.
func TestStatusIsWrittenWhateverAnAgentAnswers(t *testing.T) {
	long := strings.Repeat("€", 20_000)
	for name, answer := range map[string]func(*agentwire.Status){
		"the start of a newer agent": func(s *agentwire.Status) { s.Start.Result = "Lukewarm" },
		"long strings":               func(s *agentwire.Status) { s.Version, s.Start.Reason, s.ArgumentsError = long, long, long },
		"a year of five digits in UTC": func(s *agentwire.Status) {
			s.Start.At = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -10*3600))
		},
		"a year before the first in UTC":  func(s *agentwire.Status) { s.Start.At = time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("", 10*3600)) },
		"no time":                         func(s *agentwire.Status) { s.Start.At = time.Time{} },
		"negative numbers":                func(s *agentwire.Status) { s.Start.Items, s.Start.ItemsBefore, s.Start.GapSeconds = -1, -1<<63, -1 },
		"control characters in a version": func(s *agentwire.Status) { s.Version = "1.6.45\x00\n" },
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			env.Create("cache", "size: 1")
			env.Converge("cache")
			env.run("cache-0", "10.0.0.1")
			status := env.Agents["10.0.0.1"]
			answer(&status)
			env.Agents["10.0.0.1"] = status
			m := env.Converge("cache") // fails when the status is rejected
			s := m.Status.Shards[0]
			if s.ContainerID == "" {
				t.Fatalf("the answer wasn't recorded: %+v", s)
			}
			if s.StartResult != "" && s.StartResult != v1beta1.StartCold {
				t.Errorf("start %q", s.StartResult)
			}
			if s.Items < 0 || s.ItemsBefore < 0 || s.GapMilliseconds < 0 {
				t.Errorf("the status has negative numbers: %+v", s)
			}
			if len(s.Version) > v1beta1.MaxVersion {
				t.Errorf("the version has %d bytes", len(s.Version))
			}
		})
	}
}
