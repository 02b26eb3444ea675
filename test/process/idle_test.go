package process

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// The agent finds in the memory file what memory no client uses, whether memcached keeps an item
// in one chunk or in several, and changes no statistics for it. Restarts and handovers don't change that.
func TestIdleBytesAreThoseThatNoClientReads(t *testing.T) {
	pods.WithEach(t, pods.Tested, func(t *testing.T, version string) {
		s, next, _ := pods.NewPair(t)
		s.Memcached, next.Memcached = pods.MemcachedPath(version), pods.MemcachedPath(version)
		s.Run()
		var sets, gets strings.Builder
		for i := range 4500 {
			size := 2000
			if i%500 == 0 { // a third of which is read, as of the others
				size = 700_000
			}
			fmt.Fprintf(&sets, "set idle%d 0 0 %d noreply\r\n%s\r\n", i, size, strings.Repeat("v", size))
		}
		for i := 0; i < 4500; i += 3 {
			fmt.Fprintf(&gets, "mg idle%d\r\n", i)
		}
		pods.Talk(t, s.Address(), sets.String())
		if text := pods.Talk(t, s.Address(), gets.String()); strings.Count(text, "HD") != 1500 {
			t.Fatalf("%d hits", strings.Count(text, "HD"))
		}

		s.StopContainer()
		pods.Edit(t, s.Meta(), func(text string) string {
			second := strconv.FormatInt(pods.StopSecond(t, s.Meta()), 10)
			past := strconv.FormatInt(pods.StopSecond(t, s.Meta())-2*3600, 10)
			return strings.Replace(text, "Kstop_time "+second, "Kstop_time "+past, 1)
		})
		s.Annotate(agentwire.StopFile, "")
		if start := s.Run().Start; start.Items != 4500 {
			t.Fatalf("%+v", start)
		}

		var fresh strings.Builder
		for i := range 2250 {
			fmt.Fprintf(&fresh, "set fresh%d 0 0 2000 noreply\r\n%s\r\n", i, strings.Repeat("v", 2000))
		}
		pods.Talk(t, s.Address(), fresh.String())
		old := wantIdle(t, s, 0)
		for _, uid := range []string{"next", "third"} {
			s.Signal(syscall.SIGTERM)
			next.PodUID = uid
			next.Launch()
			wantHandedOver(t, next.WaitForPhase(agentwire.PhaseServing).Start, 6750)
			s.Exit()
			wantIdle(t, next, old)
			next.StopContainer()
			next.Annotate(agentwire.StopFile, "")
			pods.WantWarm(t, next.Run(), 6750)
			wantIdle(t, next, old)
			s, next = next, s
			next.Data = filepath.Join(next.Dir, "third")
			pods.MakeDir(t, next.Data)
		}
	})
}

// wantIdle fails if the bytes differ that no client has used for an hour, of which a third was read before. It returns them.
func wantIdle(t *testing.T, s *pods.Shard, want float64) float64 {
	t.Helper()
	var m pods.Scrape
	// A memcached that doesn't answer in time is queried again with the next sample.
	const unknown = `memcached_agent_recommendation_absent{reason="NoData"}`
	if !pods.Eventually(func() bool {
		m = s.Metrics(t, "")
		return m.Values["memcached_agent_idle_sample_items"] >= 100 && m.Values[unknown] != 1
	}) {
		t.Fatalf("no sample: %s", m.Text)
	}
	idle := func(idle, read string) float64 {
		return m.Values[fmt.Sprintf(`memcached_agent_idle_bytes{idle="%s",read="%s"}`, idle, read)]
	}
	if want == 0 { // all but the 2,250 new ones of 2,000 bytes
		want = m.Values[`memcached_agent_slab_bytes{kind="requested"}`] + m.Values[`memcached_agent_slab_bytes{kind="overhead"}`] - 2250*2400
	}
	never, before := idle("1h", "never"), idle("1h", "before")
	t.Logf("%s: %.0f bytes never read and %.0f read before, of %.0f", s.PodUID, never, before, want)
	// Ten standard errors of the sample.
	most := 0.05 * (64 << 20)
	if math.Abs(never+before-want) > most || math.Abs(before-want/3) > most {
		t.Errorf("want a third read before")
	}
	if math.Abs(idle("5m", "never")-never)+math.Abs(idle("5m", "before")-before) > most || idle("1d", "never") != 0 || idle("1d", "before") != 0 {
		t.Errorf("after two hours: %s", m.Text)
	}
	if used := m.Values[`memcached_agent_used_memory_bytes{window="1d"}`]; m.Values[`memcached_agent_recommendation_absent{reason="ColdStart"}`] != 1 || used < want-most {
		t.Errorf("the recommended memory is not unknown after a cold start, or %.0f bytes were used in a day: %s", used, m.Text)
	}
	if gets := m.Values[`memcached_commands_total{command="get",status="hit"}`]; gets != 0 {
		t.Errorf("the agent has read %v items", gets)
	}
	return want
}
