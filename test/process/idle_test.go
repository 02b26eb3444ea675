package process

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// The agent finds in the memory file what memory no client uses, whether memcached keeps an item
// in one chunk or in several, and changes no statistics for it.
func TestIdleBytesAreThoseThatNoClientReads(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			s.Memcached = pods.MemcachedPath(version)
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

			var m pods.Scrape
			for deadline := time.Now().Add(pods.Patience); m.Values["memcached_agent_idle_sample_items"] < 100; {
				if time.Now().After(deadline) {
					t.Fatalf("no sample: %s", m.Text)
				}
				m = s.Metrics(t, "")
			}
			idle := func(idle, read string) float64 {
				return m.Values[fmt.Sprintf(`memcached_agent_idle_bytes{idle="%s",read="%s"}`, idle, read)]
			}
			used := m.Values[`memcached_agent_slab_bytes{kind="requested"}`] + m.Values[`memcached_agent_slab_bytes{kind="overhead"}`]
			never, before := idle("1h", "never"), idle("1h", "before")
			// Ten standard errors of the sample.
			if most := 0.05 * (64 << 20); math.Abs(never+before-used) > most || math.Abs(before-used/3) > most {
				t.Errorf("%.0f bytes never read and %.0f read before, of %.0f; want a third read before", never, before, used)
			}
			if idle("5m", "never") != never || idle("5m", "before") != before || idle("1d", "never") != 0 || idle("1d", "before") != 0 {
				t.Errorf("after two hours: %s", m.Text)
			}
			if gets := m.Values[`memcached_commands_total{command="get",status="hit"}`]; gets != 0 {
				t.Errorf("the agent has read %v items", gets)
			}
		})
	}
}
