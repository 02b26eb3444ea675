package pods

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Scrape is an answer in the text format: values by series, types by metric.
type Scrape struct {
	Text   string
	Values map[string]float64
	Types  map[string]string
}

// FetchMetrics reads the metrics at a URL, or fails the test.
func FetchMetrics(t testing.TB, url string) Scrape {
	t.Helper()
	client := http.Client{Timeout: Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%s, %s: %s, %v", response.Status, response.Header.Get("Content-Type"), body, err)
	}
	s := Scrape{Text: string(body), Values: map[string]float64{}, Types: map[string]string{}}
	for line := range strings.Lines(s.Text) {
		words := strings.Fields(line)
		if words[0] == "#" {
			if words[1] == "TYPE" {
				s.Types[words[2]] = words[3]
			}
			continue
		}
		last := strings.LastIndexByte(line, ' ')
		series := line[:last]
		value, err := strconv.ParseFloat(strings.TrimSpace(line[last:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		sorted := strings.Split(labels, ",")
		slices.Sort(sorted)
		if labels != "" {
			name += "{" + strings.Join(sorted, ",") + "}"
		}
		s.Values[name] = value
	}
	return s
}

// Metrics returns metrics with memcached's statistics, which are not those of an earlier call.
func (s *Shard) Metrics(t testing.TB, query string) Scrape {
	t.Helper()
	return FetchUp(t, "http://"+s.MetricsAddress()+"/metrics"+query)
}

// FetchUp reads metrics until they have memcached's statistics: see FetchStatus.
func FetchUp(t testing.TB, url string) (s Scrape) {
	t.Helper()
	if !Eventually(func() bool {
		time.Sleep(1050 * time.Millisecond) //nolint:forbidigo // the agent answers with the same ones for a second
		s = FetchMetrics(t, url)
		return s.Values["memcached_up"] == 1
	}) {
		t.Fatalf("memcached has not answered in time for the metrics:\n%s", s.Text)
	}
	return s
}

// Traffic makes most of memcached's counters differ.
func Traffic(t testing.TB, address string) {
	t.Helper()
	commands := []string{"set n 0 0 1\r\n5", "incr n 1", "decr n 1", "incr none 1", "decr none 1", "touch n 0", "touch none 0", "get n none n", "delete none",
		"set k 0 0 1\r\nx", "delete k", "cas n 0 0 1 999999\r\n6", "cas none 0 0 1 1\r\n6", "gat 0 n none", "mg n v t", "mg n T60", "mg none v", "flush_all 3600",
		"set big 0 0 2000000\r\n" + strings.Repeat("x", 2_000_000)}
	for size := 100; size < 100_000; size = size * 3 / 2 {
		for i := range 20 {
			commands = append(commands, fmt.Sprintf("set size%d-%d 0 %d %d\r\n%s", size, i, i%2*1000, size, strings.Repeat("v", size)), fmt.Sprintf("get size%d-%d", size, i))
		}
	}
	Talk(t, address, strings.Join(commands, "\r\n")+"\r\n")
}
