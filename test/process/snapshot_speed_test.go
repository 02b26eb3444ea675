package process

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/copyloop"
)

// fillCaches writes so many items of 500 bytes with keys and half random values.
func fillCaches(t testing.TB, size, valueBytes int, caches ...*cache) {
	t.Helper()
	var group errgroup.Group
	for i, c := range caches {
		group.Go(func() error {
			conn, err := net.Dial("tcp", c.address())
			if err != nil {
				return err
			}
			defer conn.Close()
			value := make([]byte, valueBytes)
			seed := uint64(i + 1)
			var text []byte
			for n := range size {
				// Half of it hard to compress, as values often are.
				for at := 0; at < valueBytes; at++ {
					if at%2 == 0 {
						seed = seed*6364136223846793005 + 1442695040888963407
						value[at] = byte(seed >> 56)
					} else {
						value[at] = 'a' + byte(at%16)
					}
				}
				text = append(text, "set key:"...)
				text = strconv.AppendInt(text, int64(i), 10)
				text = append(text, ':')
				text = strconv.AppendInt(text, int64(n), 10)
				text = append(text, " 0 0 "...)
				text = strconv.AppendInt(text, int64(valueBytes), 10)
				text = append(text, " noreply\r\n"...)
				text = append(text, value...)
				text = append(text, "\r\n"...)
				if len(text) > 1<<20 || n == size-1 {
					if n == size-1 {
						text = append(text, "mn\r\n"...)
					}
					if _, err := conn.Write(text); err != nil {
						return err
					}
					text = text[:0]
				}
			}
			answer := make([]byte, 4)
			if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "MN\r\n" {
				return fmt.Errorf("answer %q: %w", answer, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkSnapshot compares a save and a load of 3 shards, of $ITEMS each, with a bare
// copy of them, in keys a second.
func BenchmarkSnapshot(b *testing.B) {
	size := 1_000_000
	if text := os.Getenv("ITEMS"); text != "" {
		size, _ = strconv.Atoi(text)
	}
	start := func() []*cache {
		var caches []*cache
		for range 3 {
			caches = append(caches, startCache(b, newest, "-m", "1200", "-t", "2"))
		}
		return caches
	}
	sources := start()
	fillCaches(b, size, 500, sources...)
	total := float64(3 * size)
	var bare, saved, loaded time.Duration
	runs := 0
	for b.Loop() {
		runs++
		targets := start()
		began := time.Now()
		var group errgroup.Group
		for i := range sources {
			group.Go(func() error {
				_, err := copyloop.Copy(b.Context(), sources[i].address(), targets[i].address())
				return err
			})
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
		bare += time.Since(began)
		for _, c := range targets {
			c.kill()
		}

		bucket, err := store.Open(b.Context(), snapshotwire.Store{Folder: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		options := copy.Options{SpoolDir: b.TempDir(), Progress: &copy.Progress{}, Log: slog.New(slog.DiscardHandler)}
		began = time.Now()
		outcome, err := copy.Save(b.Context(), bucket, saveTask(sources...), options)
		if err != nil {
			b.Fatal(err)
		}
		saved += time.Since(began)
		if outcome.Items != int64(total) {
			b.Errorf("%+v", outcome)
		}

		targets = start()
		began = time.Now()
		outcome, err = copy.Load(b.Context(), bucket, loadTask(targets...), copy.Options{SpoolDir: b.TempDir(), Progress: &copy.Progress{}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		loaded += time.Since(began)
		for _, c := range targets {
			c.kill()
		}
		if outcome.Restored != int64(total) {
			b.Errorf("%+v", outcome)
		}
	}
	rate := func(took time.Duration) float64 { return total * float64(runs) / took.Seconds() }
	b.ReportMetric(rate(bare), "bare/s")
	b.ReportMetric(rate(saved), "saved/s")
	b.ReportMetric(rate(loaded), "loaded/s")
	b.ReportMetric(100*rate(saved)/rate(bare), "%save")
	b.ReportMetric(100*rate(loaded)/rate(bare), "%load")
}
