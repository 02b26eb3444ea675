package process

import (
	"fmt"
	"math"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func TestMetricsLastOverRestarts(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Run()
	pods.Fill(t, s.Address(), 100)
	want := func(m pods.Scrape, series string, value float64) {
		t.Helper()
		if got, ok := m.Values[series]; !ok || got != value {
			t.Errorf("%s is %v (%t), want %v", series, got, ok, value)
		}
	}
	m := s.Metrics(t, "")
	want(m, "memcached_up", 1)
	want(m, "memcached_current_items", 100)
	want(m, "memcached_agent_ready", 1)
	want(m, `memcached_agent_phase{phase="Serving"}`, 1)
	want(m, `memcached_agent_phase{phase="Draining"}`, 0)
	want(m, `memcached_agent_starts_total{result="Cold"}`, 1)
	want(m, "memcached_agent_unavailable_seconds_total", 0)
	want(m, `memcached_agent_saves_total{result="saved"}`, 0)
	want(m, "memcached_agent_arguments_refused", 0)
	if m.Values["memcached_agent_probe_duration_seconds_count"] < 1 {
		t.Error("no round trip was measured")
	}
	if strings.Contains(m.Text, "memcached_slab_chunk_size_bytes") || !strings.Contains(s.Metrics(t, "?slabs=true").Text, "memcached_slab_chunk_size_bytes") {
		t.Error("the slab classes are not there on request only")
	}

	s.Annotate(agentwire.RestartFile, "once")
	s.WaitFor("the restart", func(status agentwire.Status) bool {
		return status.Restart == "once" && status.Phase == agentwire.PhaseServing
	})
	m = s.Metrics(t, "")
	want(m, `memcached_agent_starts_total{result="Warm"}`, 1)
	want(m, `memcached_agent_saves_total{result="saved"}`, 1)
	want(m, "memcached_agent_save_items", 100)
	want(m, "memcached_agent_start_items", 100)
	want(m, "memcached_agent_start_items_before", 100)
	outage := m.Values["memcached_agent_last_outage_seconds"]
	want(m, "memcached_agent_unavailable_seconds_total", outage)
	if start := s.Status().Start.UnavailableSeconds; start <= 0 || start > outage {
		t.Errorf("the restart took %v s by the metrics and %v s by the status", outage, start)
	}

	s.StopContainer()
	s.Annotate(agentwire.StopFile, "")
	s.Run()
	m = s.Metrics(t, "")
	want(m, `memcached_agent_starts_total{result="Warm"}`, 2)
	want(m, `memcached_agent_saves_total{result="saved"}`, 2)
	second := m.Values["memcached_agent_unavailable_seconds_total"]
	if second <= outage {
		t.Errorf("unavailable for %v s after a second restart, %v s after the first one", second, outage)
	}

	if err := syscall.Kill(-s.Command.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.Exit()
	s.Run()
	m = s.Metrics(t, "")
	want(m, `memcached_agent_starts_total{result="Cold"}`, 2)
	if third := m.Values["memcached_agent_unavailable_seconds_total"]; third <= second {
		t.Errorf("unavailable for %v s after a kill, %v s before", third, second)
	}
	if at := m.Values["memcached_agent_start_timestamp_seconds"]; math.Abs(at-float64(time.Now().Unix())) > pods.Patience.Seconds() {
		t.Errorf("started at %v", at)
	}
}

// Every pod of the cluster may be able to connect.
func TestFloodOfScrapesCostsMemcachedNothing(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Run()
	url := "http://" + s.MetricsAddress() + "/metrics"
	first := s.Metrics(t, "")
	const requests = 150
	began, answers := time.Now(), map[string]int{first.Text: 0}
	for range requests {
		answers[pods.FetchMetrics(t, url).Text]++
	}
	// The listener can't be faster, and each answer is of another second.
	took := time.Since(began)
	if took < requests*time.Second/60 {
		t.Errorf("%d requests were answered in %s", requests, took)
	}
	if most := int(took.Seconds()) + 2; len(answers) > most {
		t.Errorf("%d different answers in %s", len(answers), took)
	}

	for range 200 {
		conn, err := net.Dial("tcp", s.MetricsAddress())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	wantProbes(s)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if len(open) > 16+32 {
		t.Errorf("the agent has %d open files", len(open))
	}
	pods.FetchMetrics(t, url)
}

// An agent whose port is in use runs memcached nevertheless.
func TestShardServesWithoutMetrics(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	listener, err := net.Listen("tcp", s.MetricsAddress())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s.Run()
	wantProbes(s)
	pods.WantContains(t, "the log", s.Log.String(), "This pod has no metrics")
}

// The limit of connections is not -c: memcached counts its own files, too.
func TestUsableConnectionsAreTheTrueLimit(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		for _, threads := range []string{"1", "4"} {
			t.Run(version+"/"+threads, func(t *testing.T) {
				t.Parallel()
				s := pods.NewShard(t)
				s.Memcached = pods.MemcachedPath(version)
				s.Annotate(agentwire.ArgumentsFile, s.Arguments("-c", "256", "-t", threads))
				s.Run()
				usable := s.Metrics(t, "").Values["memcached_agent_usable_connections"]
				for range 400 {
					conn, err := net.Dial("tcp", s.Address())
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
				}
				m := s.Metrics(t, "")
				t.Logf("%v connections are usable, %v are open, %v refused", usable, m.Values["memcached_current_connections"], m.Values["memcached_connections_rejected_total"])
				if m.Values["memcached_connections_rejected_total"] == 0 {
					t.Error("no connection was refused")
				}
				if got := m.Values["memcached_current_connections"]; math.Abs(got-usable) > 6 {
					t.Errorf("%v connections are open at the limit, usable are %v", got, usable)
				}
			})
		}
	}
}
