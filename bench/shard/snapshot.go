package shard

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/test/bench/dataset"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
)

// Snapshot compares the save and the load of a snapshot of three memcacheds with a bare copy of their items.
var Snapshot = report.Benchmark{Name: "snapshot", Summary: "how fast a snapshot is saved and loaded, without a cluster", Flags: func(flags *flag.FlagSet) report.Measure {
	o := &snapshotOptions{}
	version(flags, &o.version)
	flags.IntVar(&o.items, "items", 1_000_000, "items of each memcached, with values of 500 bytes")
	flags.IntVar(&o.rounds, "rounds", 1, "how often each is measured")
	return o.run
}}

const bareCopy, saved, loaded = "bare copy", "save", "load"

type snapshotOptions struct {
	version       string
	items, rounds int
}

func (o *snapshotOptions) run(ctx context.Context, r *report.Run) (result report.Result, err error) {
	total := int64(3 * o.items)
	names := []string{bareCopy, saved, loaded}
	var rates [3][]float64
	err = onHost(ctx, o.version, func(h *host) error {
		var servers []*server
		start := func() (addresses []string, err error) {
			for _, s := range servers { // the sources are not among them
				if err := s.stop(); err != nil {
					return nil, err
				}
			}
			servers = nil
			for range 3 {
				s, err := h.plain(ctx, 128<<20+int64(o.items)*700, 1024, 2)
				if err != nil {
					return nil, err
				}
				servers, addresses = append(servers, s), append(addresses, s.address)
			}
			return addresses, nil
		}
		sources, err := start()
		servers = nil
		if err != nil {
			return err
		}
		if err := (&dataset.Dataset{PerShard: o.items, Size: 500}).Fill(ctx, sources); err != nil {
			return err
		}
		for round := range o.rounds {
			bucket, err := store.Open(ctx, snapshotwire.Store{Folder: filepath.Join(h.dir, fmt.Sprint("store-", round))})
			if err != nil {
				return err
			}
			options := func() copy.Options {
				return copy.Options{SpoolDir: h.dir, Progress: &copy.Progress{}, Log: slog.New(slog.DiscardHandler)}
			}
			task := func(servers []string) snapshotwire.Task {
				return snapshotwire.Task{ID: "bench", Path: "bench/cache/1", Servers: servers,
					Memcached: snapshotwire.Memcached{Namespace: "bench", Name: "cache", UID: "1", Version: o.version}}
			}
			for i, name := range names {
				into, err := start()
				if err != nil {
					return err
				}
				began := time.Now()
				var n int64
				switch name {
				case bareCopy:
					n, err = CopyAll(ctx, sources, into)
				case saved:
					var outcome snapshotwire.Outcome
					outcome, err = copy.Save(ctx, bucket, task(sources), options())
					n = outcome.Items
				case loaded:
					t := task(into)
					t.Load = &snapshotwire.Load{}
					var outcome snapshotwire.Outcome
					outcome, err = copy.Load(ctx, bucket, t, options())
					n = outcome.Restored
				}
				if err == nil && n != total {
					err = fmt.Errorf("%d of %d items", n, total)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				rate := float64(n) / time.Since(began).Seconds()
				r.Say("%s: %s items a second", name, report.Number(rate))
				rates[i] = append(rates[i], rate)
			}
		}
		return nil
	})
	table := report.Table{{"", "keys per second", "relative to the bare copy"}}
	for i, name := range names {
		rate := report.Quantile(rates[i], 0.5)
		table = append(table, []string{name, report.Number(rate), report.Percent(rate/report.Quantile(rates[0], 0.5), 0)})
	}
	result.Tables = []report.Table{table}
	return result, err
}
