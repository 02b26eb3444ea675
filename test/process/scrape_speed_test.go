package process

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// cpu returns the CPU time that a process has used.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		b.Fatal(tasks, err)
	}
	var total time.Duration
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has exited
		}
		first, _, _ := strings.Cut(string(text), " ")
		nanoseconds, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		total += time.Duration(nanoseconds)
	}
	return total
}

// BenchmarkScrape prints the CPU time of one scrape of a cache with 40 slab classes, one each
// second, and the share of a CPU that a flood takes, in which ten clients send one request
// after the other. Both are without what agent and memcached use in the same time without
// requests:
//
//	go -C test test ./process -run xxx -bench 'Scrape$' -benchtime 1x
func BenchmarkScrape(b *testing.B) {
	s := newShard(b)
	memcached := s.run().PID
	agent := s.command.Process.Pid
	traffic(b, s.address())
	url := "http://" + s.metricsAddress() + "/metrics"
	fetchMetrics(b, url)
	// used returns the CPU time of both in a period.
	used := func(run func()) (ofAgent, ofMemcached time.Duration) {
		a, m := cpu(b, agent), cpu(b, memcached)
		run()
		return cpu(b, agent) - a, cpu(b, memcached) - m
	}
	const seconds = 20
	for b.Loop() {
		idleAgent, idleMemcached := used(func() { time.Sleep(seconds * time.Second) })
		for _, query := range []string{"", "?slabs"} {
			scrapeAgent, scrapeMemcached := used(func() {
				for range seconds {
					fetchMetrics(b, url+query)
					time.Sleep(time.Second)
				}
			})
			b.ReportMetric(milliseconds(scrapeAgent-idleAgent)/seconds, "agent-ms/scrape"+query)
			b.ReportMetric(milliseconds(scrapeMemcached-idleMemcached)/seconds, "memcached-ms/scrape"+query)
		}
		requests := atomic.Int64{}
		floodAgent, floodMemcached := used(func() {
			var clients sync.WaitGroup
			end := time.Now().Add(seconds * time.Second)
			for range 10 {
				clients.Go(func() {
					for time.Now().Before(end) {
						response, err := (&http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).Get(url)
						if err == nil {
							_, _ = io.Copy(io.Discard, response.Body)
							_ = response.Body.Close()
							requests.Add(1)
						}
					}
				})
			}
			clients.Wait()
		})
		b.ReportMetric(milliseconds(floodAgent-idleAgent)/seconds/10, "agent-%/flood")
		b.ReportMetric(milliseconds(floodMemcached-idleMemcached)/seconds/10, "memcached-%/flood")
		b.ReportMetric(float64(requests.Load())/seconds, "answers/s/flood")
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
