package shard

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/test/bench/load"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/bench/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Scrapes measures what scrapes of the shards' metrics cost: processor time, and latency of a client of three shards.
var Scrapes = report.Benchmark{Name: "scrapes", Summary: "what scrapes of the shards' metrics cost", Flags: func(flags *flag.FlagSet) report.Measure {
	o := &scrapesOptions{}
	version(flags, &o.version)
	flags.IntVar(&o.rounds, "rounds", 6, "how often each kind of scrapes is measured")
	flags.DurationVar(&o.turn, "turn", 5*time.Second, "how long a kind is measured in each round; processor time, four times as long")
	flags.IntVar(&o.rate, "rate", 3000, "operations per second of the client")
	return o.run
}}

type scrapesOptions struct {
	version      string
	rounds, rate int
	turn         time.Duration
}

// scrapes is a kind of scrapes. every is the distance of two scrapes of a shard by each client; 0 without scrapes.
type scrapes struct {
	name, query string
	clients     int
	every       time.Duration
}

var (
	noScrapes  = scrapes{name: "none"}
	eachSecond = scrapes{name: "each second", clients: 1, every: time.Second}
	ofSlabs    = scrapes{name: "each second, with `?slabs`", query: "?slabs", clients: 1, every: time.Second}
	flood      = scrapes{name: "flood", clients: 10, every: time.Nanosecond}
)

func (o *scrapesOptions) run(ctx context.Context, r *report.Run) (result report.Result, err error) {
	err = onHost(ctx, o.version, func(h *host) error {
		var shards []*server
		for range 3 {
			s, err := h.shard(ctx, specOf(64<<20, 1024), nil)
			if err != nil {
				return err
			}
			shards = append(shards, s)
		}
		costs, err := o.costs(ctx, r, shards[0])
		if err != nil {
			return err
		}
		latencies, err := o.latencies(ctx, r, shards)
		result.Tables = []report.Table{costs, latencies}
		return err
	})
	return result, err
}

// costs measures the processor time of scrapes of a shard with many slab classes and no other clients.
func (o *scrapesOptions) costs(ctx context.Context, r *report.Run, s *server) (report.Table, error) {
	if err := s.useManyClasses(); err != nil {
		return nil, err
	}
	agent := s.command.Process.Pid
	memcached, err := usage.ChildOf(agent)
	if err != nil {
		return nil, err
	}
	table := report.Table{{"scrapes of a shard without clients", "answers a second", "additional processor time of the agent", "of memcached", "the agent's for an answer"}}
	var idle [2]time.Duration
	for _, kind := range []scrapes{noScrapes, eachSecond, ofSlabs, flood} {
		var before, after [2]time.Duration
		read := func(into *[2]time.Duration) (err error) {
			if into[0], err = usage.CPU(agent); err == nil {
				into[1], err = usage.CPU(memcached)
			}
			return err
		}
		if err := read(&before); err != nil {
			return nil, err
		}
		answered, err := kind.run(ctx, []*server{s}, 4*o.turn)
		if err != nil {
			return nil, err
		}
		if err := read(&after); err != nil {
			return nil, err
		}
		if kind == noScrapes {
			idle = [2]time.Duration{after[0] - before[0], after[1] - before[1]}
		}
		share := func(i int) string { return report.Percent(float64(after[i]-before[i]-idle[i])/float64(4*o.turn), 2) }
		row := []string{kind.name, fmt.Sprintf("%.1f", float64(answered)/(4*o.turn).Seconds()), share(0), share(1), ""}
		if answered > 0 {
			row[4] = report.Milliseconds((after[0]-before[0]-idle[0])/time.Duration(answered), 2)
		}
		r.Say("%s", strings.Join(row, ", "))
		table = append(table, row)
	}
	return table, nil
}

// useManyClasses stores items in 40 slab classes.
func (s *server) useManyClasses() error {
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for size := 100; size < 900_000; size = size * 5 / 4 {
		if _, err := fmt.Fprintf(conn, "set size%d 0 0 %d\r\n%0*d\r\n", size, size, size, 0); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, make([]byte, len("STORED\r\n"))); err != nil {
			return err
		}
	}
	return nil
}

// latencies measures the p99 of a client under one load, in which the kinds take turns, in relation to that without scrapes.
func (o *scrapesOptions) latencies(ctx context.Context, r *report.Run, shards []*server) (report.Table, error) {
	var addresses []string
	for _, s := range shards {
		addresses = append(addresses, s.address)
	}
	l, err := load.New(load.Config{Addresses: addresses, Keys: 3000, Rate: o.rate, Seed: 1})
	if err != nil {
		return nil, err
	}
	if err := l.Fill(ctx); err != nil {
		return nil, err
	}
	l.Start()
	defer l.Stop()
	kinds := []scrapes{noScrapes, eachSecond, flood}
	ratios := make([][]float64, len(kinds))
	for range o.rounds {
		var spans []load.Span
		for _, kind := range kinds {
			if _, err := kind.run(ctx, shards, o.turn); err != nil {
				return nil, err
			}
			until := time.Now()
			spans = append(spans, load.Span{From: until.Add(-o.turn), Until: until})
		}
		if err := cluster.Sleep(ctx, load.Patience); err != nil { // for the last answers
			return nil, err
		}
		measured := l.Report()
		base := measured.Latency(spans[0], 0.99)
		for i, kind := range kinds {
			p99 := measured.Latency(spans[i], 0.99)
			r.Say("p99 with scrapes %s: %s", kind.name, report.Milliseconds(p99, 2))
			ratios[i] = append(ratios[i], float64(p99)/float64(base))
		}
	}
	table := report.Table{{"scrapes of three shards", fmt.Sprintf("p99 at %s operations a second, relative to that without scrapes", report.Number(o.rate))}}
	for i, kind := range kinds {
		table = append(table, []string{kind.name, fmt.Sprintf("%.2f", report.Quantile(ratios[i], 0.5))})
	}
	return table, nil
}

// run scrapes each shard for a time and returns how many scrapes were answered.
func (k scrapes) run(ctx context.Context, shards []*server, d time.Duration) (int64, error) {
	within, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var answered atomic.Int64
	var group errgroup.Group
	for _, s := range shards {
		for range k.clients {
			group.Go(func() error {
				client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				for cluster.Sleep(within, k.every) == nil {
					request, err := http.NewRequestWithContext(within, http.MethodGet, s.metrics+k.query, nil)
					if err != nil {
						return err
					}
					response, err := client.Do(request)
					if err != nil {
						continue // the agent refuses more connections
					}
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
					answered.Add(1)
				}
				return nil
			})
		}
	}
	<-within.Done()
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if k.clients > 0 && answered.Load() == 0 && ctx.Err() == nil {
		return 0, fmt.Errorf("no scrape of %s was answered", k.name)
	}
	return answered.Load(), ctx.Err()
}
