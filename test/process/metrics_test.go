package process

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// scrape is an answer in the text format: values by series, types by metric.
type scrape struct {
	text   string
	values map[string]float64
	types  map[string]string
}

func fetchMetrics(t testing.TB, url string) scrape {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%s, %s: %s, %v", response.Status, response.Header.Get("Content-Type"), body, err)
	}
	s := scrape{text: string(body), values: map[string]float64{}, types: map[string]string{}}
	for line := range strings.Lines(s.text) {
		words := strings.Fields(line)
		if words[0] == "#" {
			if words[1] == "TYPE" {
				s.types[words[2]] = words[3]
			}
			continue
		}
		series, text, _ := cutLast(strings.TrimSpace(line), " ")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		sorted := strings.Split(labels, ",")
		slices.Sort(sorted)
		if labels != "" {
			name += "{" + strings.Join(sorted, ",") + "}"
		}
		s.values[name] = value
	}
	return s
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// metrics returns metrics that are not those of an earlier call.
func (s *shard) metrics(t testing.TB, query string) scrape {
	t.Helper()
	time.Sleep(1050 * time.Millisecond)
	return fetchMetrics(t, "http://"+s.metricsAddress()+"/metrics"+query)
}

// traffic makes most of memcached's counters differ.
func traffic(t testing.TB, address string) {
	t.Helper()
	commands := []string{"set n 0 0 1\r\n5", "incr n 1", "decr n 1", "incr none 1", "decr none 1", "touch n 0", "touch none 0", "get n none n", "delete none",
		"set k 0 0 1\r\nx", "delete k", "cas n 0 0 1 999999\r\n6", "cas none 0 0 1 1\r\n6", "gat 0 n none", "mg n v t", "mg n T60", "mg none v", "flush_all 3600",
		"set big 0 0 2000000\r\n" + strings.Repeat("x", 2_000_000)}
	for size := 100; size < 100_000; size = size * 3 / 2 {
		for i := range 20 {
			commands = append(commands, fmt.Sprintf("set size%d-%d 0 %d %d\r\n%s", size, i, i%2*1000, size, strings.Repeat("v", size)), fmt.Sprintf("get size%d-%d", size, i))
		}
	}
	talk(t, address, strings.Join(commands, "\r\n")+"\r\n")
}

// startProgram starts the program that a variable names, until the test ends, and logs its output if the test fails.
func startProgram(t *testing.T, variable string, args ...string) {
	t.Helper()
	program, out := os.Getenv(variable), &log{}
	if program == "" {
		t.Fatalf("%s is not set: run make test, or eval $(make -s env)", variable)
	}
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("output of %s:\n%s", program, out)
		}
	})
}

// exporter starts memcached_exporter for the memcached of a shard and returns the URL of its metrics.
func exporter(t *testing.T, s *shard, pid int) string {
	t.Helper()
	pidFile := filepath.Join(s.dir, "pid")
	writeFile(t, pidFile, strconv.Itoa(pid))
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	startProgram(t, "MEMCACHED_EXPORTER", "--memcached.address", s.address(), "--memcached.pid-file", pidFile, "--web.listen-address", address)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return "http://" + address + "/metrics"
		}
		if time.Now().After(deadline) {
			t.Fatalf("the exporter does not listen: %v", err)
		}
	}
}

// Dashboards and alerts for memcached_exporter work with the agent's metrics.
func TestMetricsAreThoseOfMemcachedExporter(t *testing.T) {
	t.Parallel()
	// The exporter calls two gauges counters.
	gauges := []string{"memcached_slab_mem_requested_bytes", "memcached_slab_items_evicted_time_seconds"}
	// The exporter's own connections, and what the kernel changes at any time.
	moving := regexp.MustCompile(`^memcached_(current_connections|process_(open_fds|resident_memory_bytes|virtual_memory_bytes))$`)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.memcached = memcachedPath(version)
			pid := s.run().PID
			traffic(t, s.address())
			url := exporter(t, s, pid)
			before := s.metrics(t, "?slabs")
			theirs := fetchMetrics(t, url)
			after := s.metrics(t, "?slabs")

			compared := 0
			for series, value := range theirs.values {
				name, _, _ := strings.Cut(series, "{")
				if !strings.HasPrefix(name, "memcached_") || name == "memcached_exporter_build_info" {
					continue
				}
				low, ok := before.values[series]
				if !ok {
					t.Errorf("the agent has no %s (%v)", series, value)
					continue
				}
				compared++
				if high := after.values[series]; !moving.MatchString(name) && (value < min(low, high) || value > max(low, high)) {
					t.Errorf("%s: the exporter has %v, the agent had %v before and %v after it", series, value, low, high)
				}
				if want := theirs.types[name]; before.types[name] != want && !slices.Contains(gauges, name) {
					t.Errorf("%s is a %s, the exporter's a %s", name, before.types[name], want)
				}
			}
			if compared < 500 {
				t.Errorf("only %d series were compared", compared)
			}
			for series := range before.values {
				if _, ok := theirs.values[series]; !ok && !strings.HasPrefix(series, "memcached_agent_") {
					t.Errorf("the exporter has no %s", series)
				}
			}
			t.Logf("%d series are equal, %d are the agent's own", compared, len(before.values)-compared)
		})
	}
}

// promtool has no complaints but those about names of memcached_exporter.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	t.Parallel()
	program := os.Getenv("PROMTOOL")
	if program == "" {
		t.Fatal("PROMTOOL is not set: run make test, or eval $(make -s env)")
	}
	s := newShard(t)
	s.run()
	traffic(t, s.address())
	command := exec.Command(program, "check", "metrics")
	command.Stdin = strings.NewReader(s.metrics(t, "?slabs").text)
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

func TestMetricsLastOverRestarts(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	fill(t, s.address(), 100)
	want := func(m scrape, series string, value float64) {
		t.Helper()
		if got, ok := m.values[series]; !ok || got != value {
			t.Errorf("%s is %v (%t), want %v", series, got, ok, value)
		}
	}
	m := s.metrics(t, "")
	want(m, "memcached_up", 1)
	want(m, "memcached_current_items", 100)
	want(m, "memcached_agent_ready", 1)
	want(m, `memcached_agent_phase{phase="Serving"}`, 1)
	want(m, `memcached_agent_phase{phase="Draining"}`, 0)
	want(m, `memcached_agent_starts_total{result="Cold"}`, 1)
	want(m, "memcached_agent_unavailable_seconds_total", 0)
	want(m, `memcached_agent_saves_total{result="saved"}`, 0)
	want(m, "memcached_agent_arguments_refused", 0)
	if m.values["memcached_agent_probe_duration_seconds_count"] < 1 {
		t.Error("no round trip was measured")
	}
	if strings.Contains(m.text, "memcached_slab_chunk_size_bytes") || !strings.Contains(s.metrics(t, "?slabs=true").text, "memcached_slab_chunk_size_bytes") {
		t.Error("the slab classes are not there on request only")
	}

	s.annotate(agentwire.RestartFile, "once")
	s.waitFor("the restart", func(status agentwire.Status) bool {
		return status.Restart == "once" && status.Phase == agentwire.PhaseServing
	})
	m = s.metrics(t, "")
	want(m, `memcached_agent_starts_total{result="Warm"}`, 1)
	want(m, `memcached_agent_saves_total{result="saved"}`, 1)
	want(m, "memcached_agent_save_items", 100)
	want(m, "memcached_agent_start_items", 100)
	want(m, "memcached_agent_start_items_before", 100)
	outage := m.values["memcached_agent_last_outage_seconds"]
	want(m, "memcached_agent_unavailable_seconds_total", outage)
	if start := s.status().Start.UnavailableSeconds; start <= 0 || start > outage {
		t.Errorf("the restart took %v s by the metrics and %v s by the status", outage, start)
	}

	s.stopContainer()
	s.annotate(agentwire.StopFile, "")
	s.run()
	m = s.metrics(t, "")
	want(m, `memcached_agent_starts_total{result="Warm"}`, 2)
	want(m, `memcached_agent_saves_total{result="saved"}`, 2)
	second := m.values["memcached_agent_unavailable_seconds_total"]
	if second <= outage {
		t.Errorf("unavailable for %v s after a second restart, %v s after the first one", second, outage)
	}

	if err := syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.exit()
	s.run()
	m = s.metrics(t, "")
	want(m, `memcached_agent_starts_total{result="Cold"}`, 2)
	if third := m.values["memcached_agent_unavailable_seconds_total"]; third <= second {
		t.Errorf("unavailable for %v s after a kill, %v s before", third, second)
	}
	if at := m.values["memcached_agent_start_timestamp_seconds"]; math.Abs(at-float64(time.Now().Unix())) > patience.Seconds() {
		t.Errorf("started at %v", at)
	}
}

// The agent answers while memcached does not, and says so.
func TestMetricsOfAMemcachedThatHangs(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	pid := s.run().PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	m := s.metrics(t, "")
	if m.values["memcached_up"] != 0 || m.values["memcached_agent_ready"] != 0 || m.values[`memcached_agent_phase{phase="Serving"}`] != 1 {
		t.Errorf("%s", m.text)
	}
	for deadline := time.Now().Add(patience); s.metrics(t, "").values["memcached_agent_unavailable_seconds_total"] == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the hang is not counted")
		}
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); s.metrics(t, "").values["memcached_agent_last_outage_seconds"] == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the hang does not end")
		}
	}
	if m := s.metrics(t, ""); m.values["memcached_up"] != 1 {
		t.Error("memcached is down")
	}
}

// Every pod of the cluster may be able to connect.
func TestFloodOfScrapesCostsMemcachedNothing(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	url := "http://" + s.metricsAddress() + "/metrics"
	first := s.metrics(t, "")
	const requests = 150
	began, answers := time.Now(), map[string]int{first.text: 0}
	for range requests {
		answers[fetchMetrics(t, url).text]++
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
		conn, err := net.Dial("tcp", s.metricsAddress())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	wantProbes(t, s)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if len(open) > 16+32 {
		t.Errorf("the agent has %d open files", len(open))
	}
	fetchMetrics(t, url)
}

// An agent whose port is in use runs memcached nevertheless.
func TestShardServesWithoutMetrics(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	listener, err := net.Listen("tcp", s.metricsAddress())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s.run()
	wantProbes(t, s)
	wantContains(t, "the log", s.log.String(), "This pod has no metrics")
}

// The limit of connections is not -c: memcached counts its own files, too.
func TestUsableConnectionsAreTheTrueLimit(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		for _, threads := range []string{"1", "4"} {
			t.Run(version+"/"+threads, func(t *testing.T) {
				t.Parallel()
				s := newShard(t)
				s.memcached = memcachedPath(version)
				s.annotate(agentwire.ArgumentsFile, s.arguments("-c", "256", "-t", threads))
				s.run()
				usable := s.metrics(t, "").values["memcached_agent_usable_connections"]
				for range 400 {
					conn, err := net.Dial("tcp", s.address())
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
				}
				m := s.metrics(t, "")
				t.Logf("%v connections are usable, %v are open, %v refused", usable, m.values["memcached_current_connections"], m.values["memcached_connections_rejected_total"])
				if m.values["memcached_connections_rejected_total"] == 0 {
					t.Error("no connection was refused")
				}
				if got := m.values["memcached_current_connections"]; math.Abs(got-usable) > 6 {
					t.Errorf("%v connections are open at the limit, usable are %v", got, usable)
				}
			})
		}
	}
}
