package command

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// createBusy creates a Memcached with shards, which have that many hits a second by the metrics of their pods.
func (w *world) createBusy(namespace, name string, shards int) {
	w.t.Helper()
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if err := w.api.Create(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
	for i := range shards {
		shard := fmt.Sprintf("%s-%d", name, i)
		m.Status.Shards = append(m.Status.Shards, v1beta1.ShardStatus{Name: shard, PodName: shard + "-x", Ready: true})
	}
	w.report(m)
}

// serveMetrics lets each pod have 100 requests in a window, or what hot says, and returns how often each was read.
func (w *world) serveMetrics(hot map[string]int) map[string]int {
	var lock sync.Mutex
	reads := map[string]int{}
	w.passes = time.Second
	w.pause = func(int) bool { return true }
	w.pods.metrics = func(namespace, pod string) (string, error) {
		lock.Lock()
		defer lock.Unlock()
		at := namespace + "/" + pod
		reads[at]++
		each := 100
		if hot[pod] > 0 {
			each = hot[pod]
		}
		if namespace == "closed" {
			return "", cannot("create", "", "pods/portforward", pod)
		}
		n := reads[at] * each
		return fmt.Sprintf(`# HELP memcached_commands_total Requests
memcached_commands_total{command="get",status="hit"} %d
memcached_commands_total{command="get",status="miss"} %d
memcached_commands_total{command="set",status="hit"} 7
memcached_process_cpu_seconds_total %g
memcached_current_bytes 1.5e+06
memcached_limit_bytes 6e+06
memcached_current_connections 12
memcached_items_evicted_total 3
memcached_agent_eviction_age_seconds 7200
`, n*9/10, n/10, float64(n)/1000), nil
	}
	return reads
}

func TestTopShowsRatesAndMarksSiblings(t *testing.T) {
	w := newWorld(t)
	w.createBusy("default", "cache", 4)
	w.createBusy("default", "quiet", 3)
	reads := w.serveMetrics(map[string]int{"cache-2-x": 300, "quiet-0-x": 1, "quiet-1-x": 1, "quiet-2-x": 8})
	w.want(w.run("top", "cache"), 0, `SHARD    REQUESTS/S  HITS   EVICTION AGE  MEMORY  CONNECTIONS  CPU   DEVIATES
cache-0  100         90.0%  120m          25.0%   12           0.10  -
cache-1  100         90.0%  120m          25.0%   12           0.10  -
cache-2  300         90.0%  120m          25.0%   12           0.30  requests +200%
cache-3  100         90.0%  120m          25.0%   12           0.10  -
`, "")
	if reads["default/cache-0-x"] != 4 {
		t.Errorf("three windows have %d samples", reads["default/cache-0-x"])
	}
	w.want(w.run("top", "quiet"), 0, "quiet-2  8 ", "")
	if strings.Contains(w.out.String(), "requests") {
		t.Errorf("10 requests a second are compared:\n%s", w.out.String())
	}
	w.want(w.run("top", "cache", "-o", "json"), 0, `"figure": "requests"`, "")
	w.want(w.run("top", "cache", "-A"), exitUsage, "", "exclude each other")
}

func TestTopQueriesOnlyWhatItShows(t *testing.T) {
	w := newWorld(t)
	for i := range 1000 {
		w.createBusy(fmt.Sprintf("team-%03d", i/5), fmt.Sprintf("cache%d", i%5), 3)
	}
	reads := w.serveMetrics(nil)
	w.want(w.run("top", "-A"), 0, "team-000   cache0-0", "")
	w.want(0, 0, "987 Memcacheds are not shown: name a namespace with -n, or raise --limit\n", "")
	if rows := strings.Count(w.out.String(), "\nteam-"); rows != 39 || len(reads) != rows {
		t.Errorf("%d shards are shown, and %d were queried", rows, len(reads))
	}
	for pod, n := range reads {
		if n != 4 {
			t.Errorf("%s was queried %d times", pod, n)
		}
	}
	w.want(w.run("top", "-A", "--limit", "2"), 0, "999 Memcacheds are not shown", "")
	w.want(w.run("top"), 0, "There is no shard.", "")
}

func TestTopShowsTheOtherNamespaces(t *testing.T) {
	w := newWorld(t)
	for _, namespace := range []string{"a", "closed", "open"} {
		w.createBusy(namespace, "cache", 3)
	}
	reads := w.serveMetrics(nil)
	w.want(w.run("top", "-A"), 0, "closed     cache-2  -           -      -             -       -            -     -\nopen       cache-0  100 ", "")
	w.want(0, 0, "Not shown  bob lacks the permission to create pods/portforward", "")
	if n := strings.Count(w.out.String(), "Not shown"); n != 1 || reads["closed/cache-1-x"] != 0 {
		t.Errorf("%d messages about one namespace, and %v", n, reads)
	}
}

func TestSizeSaysWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.pods.metrics = func(_, pod string) (string, error) {
		if pod == "cache-1-b" {
			return "", context.DeadlineExceeded
		}
		return "memcached_agent_recommended_memory_bytes{reason=\"Unused\"} 33554432\n", nil
	}
	w.want(w.run("size", "cache"), 0, "Not shown  metrics: the agent in pod cache-1-b in namespace default didn't answer within 5s: check the pod, its node and the network\n", "")
	w.want(w.run("size", "cache", "-o", "json"), 0, `"reason": "Unused"`, "")
	w.want(w.run("status", "cache"), 0, "default/cache is Running", "")
	w.pods.metrics = func(_, pod string) (string, error) { return "", cannot("create", "", "pods/portforward", pod) }
	w.want(w.run("size", "cache"), 0, "Not shown  metrics: bob lacks the permission to create pods/portforward in namespace default.", "")
}
