package demo

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/bench/load"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	// older is the version that the demo changes to first.
	older       = "1.6.38"
	rate        = 1000 // operations per second
	sayInterval = time.Second
)

// upgrade changes the version of memcached to an older one and back while a client reads and writes.
func (d *demo) upgrade(ctx context.Context) error {
	d.chapter("Change the version of memcached under load: to an older one and back")
	m, err := d.Memcached(ctx, d.key)
	if err != nil {
		return err
	}
	newest := m.Status.Version
	l, err := d.load(ctx)
	if err != nil {
		return err
	}
	defer l.Stop()
	before, err := d.Pods(ctx, d.key)
	if err != nil {
		return err
	}
	change := time.Now()
	for _, version := range []string{older, newest} {
		if err := d.changeVersion(ctx, l, version); err != nil {
			return err
		}
	}
	report := l.Stop()
	if err := d.samePods(ctx, before); err != nil {
		return err
	}
	count, err := d.count(minWarm, 0, 1, 2)
	if err != nil {
		return err
	}
	d.good("the shards kept %d of %d items during both changes, in the same pods", count, shards*perShard)
	until := report.At(report.Buckets())
	sum := report.Sum(load.Span{From: change, Until: until})
	if sum.Wrong > 0 {
		return fmt.Errorf("%d gets returned the value of another key", sum.Wrong)
	}
	lost := report.Loss(load.Span{From: report.Began, Until: change}, load.Span{From: change, Until: until})
	d.result("during both changes the client lost as many hits as it has in %.1f s: those of a shard while its memcached restarts", max(lost.Seconds, 0))
	return nil
}

// load starts a load after it has written all items, as one shard lost its items with its pod.
func (d *demo) load(ctx context.Context) (*load.Load, error) {
	addresses, err := d.AnsweringAddresses(ctx, d.key, shards)
	if err != nil {
		return nil, err
	}
	if _, err := d.write(); err != nil {
		return nil, err
	}
	l, err := load.New(load.Config{Addresses: addresses, Keys: shards * perShard, Rate: rate, Seed: 1})
	if err != nil {
		return nil, err
	}
	if err := l.Fill(ctx); err != nil {
		return nil, err
	}
	l.Start()
	d.result("a client reads and writes %d times per second, with a hit ratio of 100%%", rate)
	time.Sleep(2 * sayInterval)
	return l, nil
}

// changeVersion changes spec.version and prints the progress until every shard runs the version.
func (d *demo) changeVersion(ctx context.Context, l *load.Load, version string) error {
	patch := fmt.Sprintf(`{"spec":{"version":%q}}`, version)
	d.command("kubectl patch memcached %s --type=merge -p '%s'", d.key.Name, patch)
	began := time.Now()
	m, err := d.Memcached(ctx, d.key)
	if err != nil {
		return err
	}
	if err := d.Patch(ctx, m, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return fmt.Errorf("changing the version to %s: %w", version, err)
	}
	said := began
	m, err = d.Await(ctx, d.key, "memcached "+version, func(m *v1beta1.Memcached) error {
		if now := time.Now(); now.Sub(said) >= sayInterval {
			c := l.Report().Sum(load.Span{From: said, Until: now})
			d.result("hit ratio %5.1f%%  %3.0f errors/s  %s", 100*c.Ratio(), float64(c.Errors)/now.Sub(said).Seconds(), progress(m))
			said = now
		}
		for ordinal := range shards {
			s, err := cluster.Shard(m, ordinal)
			if err != nil {
				return err
			}
			if s.Version != version {
				return fmt.Errorf("shard %s runs %s: %s", s.Name, s.Version, progress(m))
			}
		}
		return cluster.Available(m)
	})
	if err != nil {
		return err
	}
	for _, s := range m.Status.Shards {
		if s.StartResult != v1beta1.StartWarm {
			return fmt.Errorf("shard %s started %q, want a warm start", s.Name, s.StartResult)
		}
	}
	d.result("all shards run %s after %.1f s with their items", version, time.Since(began).Seconds())
	return nil
}

// progress returns the message of the condition Progressing.
func progress(m *v1beta1.Memcached) string {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionProgressing); c != nil {
		return c.Message
	}
	return "no condition Progressing"
}
