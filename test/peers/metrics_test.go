package peers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// exporter starts memcached_exporter for the memcached of a shard and returns the URL of its metrics.
func exporter(t *testing.T, s *pods.Shard, pid int) string {
	t.Helper()
	pidFile := filepath.Join(s.Dir, "pid")
	pods.WriteFile(t, pidFile, strconv.Itoa(pid))
	address := fmt.Sprintf("127.0.0.1:%d", pods.FreePort(t))
	command, out := exec.Command(os.Getenv("MEMCACHED_EXPORTER"), "--memcached.address", s.Address(), "--memcached.pid-file", pidFile, "--web.listen-address", address), &pods.Log{}
	command.Stdout, command.Stderr = out, out
	pods.Must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("output of the exporter:\n%s", out)
		}
	})
	if !pods.Eventually(func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	}) {
		t.Fatal("the exporter does not listen")
	}
	return "http://" + address + "/metrics"
}

// Dashboards and alerts for memcached_exporter work with the agent's metrics.
func TestMetricsAreThoseOfMemcachedExporter(t *testing.T) {
	t.Parallel()
	// The exporter calls two gauges counters.
	gauges := []string{"memcached_slab_mem_requested_bytes", "memcached_slab_items_evicted_time_seconds"}
	// The exporter's own connections, and what the kernel changes at any time.
	moving := regexp.MustCompile(`^memcached_(current_connections|process_(open_fds|resident_memory_bytes|virtual_memory_bytes))$`)
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			s.Memcached = pods.MemcachedPath(version)
			pid := s.Run().PID
			pods.Traffic(t, s.Address())
			url := exporter(t, s, pid)
			before := s.Metrics(t, "?slabs")
			theirs := pods.FetchUp(t, url)
			after := s.Metrics(t, "?slabs")

			compared := 0
			for series, value := range theirs.Values {
				name, _, _ := strings.Cut(series, "{")
				if !strings.HasPrefix(name, "memcached_") || name == "memcached_exporter_build_info" {
					continue
				}
				low, ok := before.Values[series]
				if !ok {
					t.Errorf("the agent has no %s (%v)", series, value)
					continue
				}
				compared++
				if high := after.Values[series]; !moving.MatchString(name) && (value < min(low, high) || value > max(low, high)) {
					t.Errorf("%s: the exporter has %v, the agent had %v before and %v after it", series, value, low, high)
				}
				if want := theirs.Types[name]; before.Types[name] != want && !slices.Contains(gauges, name) {
					t.Errorf("%s is a %s, the exporter's a %s", name, before.Types[name], want)
				}
			}
			if compared < 500 {
				t.Errorf("only %d series were compared", compared)
			}
			for series := range before.Values {
				if _, ok := theirs.Values[series]; !ok && !strings.HasPrefix(series, "memcached_agent_") {
					t.Errorf("the exporter has no %s", series)
				}
			}
			t.Logf("%d series are equal, %d are the agent's own", compared, len(before.Values)-compared)
		})
	}
}

// promtool has no complaints but those about names of memcached_exporter.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Run()
	pods.Traffic(t, s.Address())
	command := exec.Command(os.Getenv("PROMTOOL"), "check", "metrics")
	command.Stdin = strings.NewReader(s.Metrics(t, "?slabs").Text)
	out, err := command.CombinedOutput()
	var complaints []string
	for line := range strings.Lines(string(out)) {
		if name, _, ok := strings.Cut(line, " "); ok && strings.HasPrefix(name, "memcached_") && !slices.Contains(complaints, name) {
			complaints = append(complaints, name)
		}
	}
	slices.Sort(complaints)
	want := []string{"memcached_slab_items_moves_to_cold", "memcached_slab_items_moves_to_warm", "memcached_slab_items_moves_within_lru", "memcached_uptime_seconds"}
	if exit := new(exec.ExitError); !slices.Equal(complaints, want) || !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
