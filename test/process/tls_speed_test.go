package process

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

// BenchmarkTLS compares clients without TLS, with it, and in mode Permissive, in turns. It reports the medians of p50, p99 and
// requests a second, each divided by those of memcached without TLS in the same round, and the memory of an idle connection in
// KiB. Set ROUNDS and SECONDS, the time of each.
func BenchmarkTLS(b *testing.B) {
	rounds, turn := number("ROUNDS", 6), time.Duration(number("SECONDS", 3))*time.Second
	ca := testcert.NewCA("shards")
	secured := clientConfig(b, ca, nil)
	kinds := []struct {
		name   string
		words  []string
		config *tls.Config
		shard  *tlsShard
	}{
		{name: "plain"},
		{name: "required", words: wordsRequired, config: secured},
		{name: "permissive-plain", words: wordsPermissive},
		{name: "permissive-tls", words: wordsPermissive, config: secured},
	}
	for i := range kinds {
		kind := &kinds[i]
		kind.shard = newTLSShard(b)
		kind.shard.annotate(agentwire.ArgumentsFile, kind.shard.arguments(append([]string{"-c", "4096"}, kind.words...)...))
		kind.shard.issue(ca, testcert.Options{})
		kind.shard.run()
	}
	type result struct{ p50, p99, rate float64 }
	ratios := map[string][]result{}
	for b.Loop() {
		for range rounds {
			var base result
			for _, kind := range kinds {
				latencies := readFor(b, kind.shard.address(), kind.config, turn)
				r := result{quantile(latencies, 0.5), quantile(latencies, 0.99), float64(len(latencies)) / turn.Seconds()}
				if kind.name == "plain" {
					base = r
				}
				ratios[kind.name] = append(ratios[kind.name], result{r.p50 / base.p50, r.p99 / base.p99, r.rate / base.rate})
				b.Logf("%-16s p50 %3.0f us, p99 %4.0f us, %6.0f requests/s", kind.name, r.p50*1e6, r.p99*1e6, r.rate)
			}
		}
	}
	for _, kind := range kinds {
		median := func(of func(result) float64) float64 {
			var all []float64
			for _, r := range ratios[kind.name] {
				all = append(all, of(r))
			}
			return quantile(all, 0.5)
		}
		b.ReportMetric(median(func(r result) float64 { return r.p50 }), "p50-"+kind.name)
		b.ReportMetric(median(func(r result) float64 { return r.p99 }), "p99-"+kind.name)
		b.ReportMetric(median(func(r result) float64 { return r.rate }), "rate-"+kind.name)
		b.ReportMetric(connectionKiB(b, kind.shard, kind.config), "KiB/conn-"+kind.name)
	}
	b.ReportMetric(0, "ns/op")
}

func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[int(float64(len(values)-1)*q)]
}

// dialAndGet opens a connection and sends one request.
func dialAndGet(ctx context.Context, address string, config *tls.Config) (net.Conn, *bufio.Reader, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil && config != nil {
		conn = tls.Client(conn, config)
	}
	if err != nil {
		return nil, nil, err
	}
	r := bufio.NewReader(conn)
	return conn, r, get(conn, r)
}

func get(conn net.Conn, r *bufio.Reader) error {
	if _, err := io.WriteString(conn, "mg key v\r\n"); err != nil {
		return err
	}
	_, err := r.ReadString('\n')
	return err
}

// readFor reads one key over four connections, and returns the latencies in seconds.
func readFor(b *testing.B, address string, config *tls.Config, d time.Duration) (latencies []float64) {
	b.Helper()
	var lock sync.Mutex
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			conn, r, err := dialAndGet(b.Context(), address, config)
			if err != nil {
				b.Error(err)
				return
			}
			defer conn.Close()
			var own []float64
			for began := time.Now(); time.Since(began) < d; {
				sent := time.Now()
				if err := get(conn, r); err != nil {
					b.Error(err)
					return
				}
				own = append(own, time.Since(sent).Seconds())
			}
			lock.Lock()
			defer lock.Unlock()
			latencies = append(latencies, own...)
		})
	}
	running.Wait()
	if len(latencies) == 0 {
		b.Fatal("no request was answered")
	}
	return latencies
}

// connectionKiB returns by how much each connection enlarges memcached and its agent.
func connectionKiB(b *testing.B, s *tlsShard, config *tls.Config) float64 {
	b.Helper()
	const connections = 2000
	pids := []int{s.status().PID, s.command.Process.Pid}
	before := 0
	for _, pid := range pids {
		before += residentKiB(b, pid)
	}
	for range connections {
		conn, _, err := dialAndGet(b.Context(), s.address(), config)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
	}
	after := 0
	for _, pid := range pids {
		after += residentKiB(b, pid)
	}
	return float64(after-before) / connections
}

func residentKiB(b *testing.B, pid int) (kib int) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return kib
}
