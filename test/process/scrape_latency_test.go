package process

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	clientload "github.com/memcached-operator/memcached-operator/test/internal/load"
)

// BenchmarkScrapes reports the p99 of a client's latencies while all shards are scraped each second, and in a flood of scrapes
// from one connection after the other, each divided by that without scrapes. The three take turns under one load. Set ROUNDS and
// SECONDS, the time of each.
func BenchmarkScrapes(b *testing.B) {
	rounds, turn := number("ROUNDS", 6), time.Duration(number("SECONDS", 5))*time.Second
	var addresses, urls []string
	for range 3 {
		s := newShard(b)
		s.run()
		addresses = append(addresses, s.address())
		urls = append(urls, "http://"+s.metricsAddress()+"/metrics")
	}
	l, err := clientload.New(clientload.Config{Addresses: addresses, Keys: 3000, Rate: number("RATE", 3000), Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Fill(b.Context()); err != nil {
		b.Fatal(err)
	}
	// The distance of two scrapes of a shard; none at 0.
	kinds := []struct {
		name  string
		every time.Duration
	}{{"none", 0}, {"each-second", time.Second}, {"flood", time.Nanosecond}}
	ratios := map[string][]float64{}
	l.Start()
	defer l.Stop()
	for b.Loop() {
		for range rounds {
			var spans []clientload.Span
			for _, kind := range kinds {
				answered := scrapeFor(b.Context(), urls, kind.every, turn)
				until := time.Now()
				spans = append(spans, clientload.Span{From: until.Add(-turn), Until: until})
				if kind.every > 0 && answered == 0 {
					b.Fatalf("no scrape of %s was answered", kind.name)
				}
				b.Logf("%s: %d scrapes answered", kind.name, answered)
			}
			time.Sleep(clientload.Patience) // for the last answers
			r := l.Report()
			for i, kind := range kinds {
				ratios[kind.name] = append(ratios[kind.name], float64(r.Latency(spans[i], 0.99))/float64(r.Latency(spans[0], 0.99)))
			}
		}
	}
	for _, kind := range kinds[1:] {
		all := ratios[kind.name]
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], "p99-ratio-"+kind.name)
		b.Logf("%s: %s", kind.name, fmt.Sprintf("%.2f", all))
	}
	b.ReportMetric(0, "ns/op")
}

// scrapeFor scrapes each URL for a time and returns how many scrapes were answered.
func scrapeFor(ctx context.Context, urls []string, every, d time.Duration) (answered int) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var lock sync.Mutex
	var running sync.WaitGroup
	for _, url := range urls {
		if every == 0 {
			break
		}
		running.Go(func() {
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for cluster.Sleep(ctx, every) == nil {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err != nil {
					return
				}
				response, err := client.Do(request)
				if err != nil {
					continue // the agent refuses more connections
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				lock.Lock()
				answered++
				lock.Unlock()
			}
		})
	}
	<-ctx.Done()
	running.Wait()
	return answered
}
