package process

import (
	"math"
	"net"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

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
}

// An agent whose port is in use runs memcached nevertheless.
func TestShardServesWithoutMetrics(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	listener, err := net.Listen("tcp", s.MetricsAddress())
	pods.Must(t, err)
	defer listener.Close()
	s.Run()
	wantProbes(s)
	pods.WantContains(t, "the log", s.Log.String(), "This pod has no metrics")
}

// The limit of connections is not -c: memcached counts its own files, too. With 64 threads it does not start with 256 of them.
func TestUsableConnectionsAreTheTrueLimit(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		for _, threads := range []string{"1", "64"} {
			t.Run(version+"/"+threads, func(t *testing.T) {
				t.Parallel()
				s := pods.NewShard(t)
				s.Memcached = pods.MemcachedPath(version)
				s.Annotate(agentwire.ArgumentsFile, s.Arguments("-c", "256", "-t", threads))
				s.Run()
				usable := s.Metrics(t, "").Values["memcached_agent_usable_connections"]
				for range 400 {
					conn, err := net.Dial("tcp", s.Address())
					pods.Must(t, err)
					defer conn.Close()
				}
				var m pods.Scrape
				pods.Eventually(func() bool { m = s.Metrics(t, ""); return m.Values["memcached_connections_rejected_total"] > 0 })
				t.Logf("%v connections are usable, %v are open, %v refused", usable, m.Values["memcached_current_connections"], m.Values["memcached_connections_rejected_total"])
				if m.Values["memcached_connections_rejected_total"] == 0 {
					t.Error("no connection was refused")
				}
				if got := m.Values["memcached_current_connections"]; math.Abs(got-usable) > 6 || got < 256 {
					t.Errorf("%v connections are open at the limit, usable are %v", got, usable)
				}
				wantProbes(s)
			})
		}
	}
}
