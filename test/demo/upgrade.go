package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/load"
)

const (
	// older is the version to which the demo goes back for a while.
	older = "1.6.38"
	// rate of the load, in operations a second.
	rate = 1000
	// tellEvery is how long two lines about the load are apart.
	tellEvery = time.Second
)

// upgrade changes memcached's version while a client reads and writes: to an older
// one, and back to the one before.
func (d *demo) upgrade(ctx context.Context) error {
	d.chapter("memcached's version is changed under load: to an older one, and back")
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
	after, err := d.Pods(ctx, d.key)
	if err != nil {
		return err
	}
	for shard, pod := range before {
		if after[shard].UID != pod.UID {
			return fmt.Errorf("shard %s was to keep its pod %s and has another one", shard, pod.Name)
		}
	}
	count, err := d.kept(warm, 0, 1, 2)
	if err != nil {
		return err
	}
	d.good("%d of %d items were kept over both changes, in the same pods", count, shards*perShard)
	ended := report.At(report.Buckets())
	sum := report.Sum(load.Span{From: change, Until: ended})
	if sum.Wrong > 0 {
		return fmt.Errorf("%d gets were answered with another key's value", sum.Wrong)
	}
	lost := report.Loss(load.Span{From: report.Began, Until: change}, load.Span{From: change, Until: ended})
	d.result("over both, the client lost as many hits as it has in %.1f s: those of a shard while its memcached restarts", max(lost.Seconds, 0))
	return nil
}

// load starts a load on shards that hold all items: one has lost its own with its
// pod, a while ago.
func (d *demo) load(ctx context.Context) (*load.Load, error) {
	addresses, err := d.Addresses(ctx, d.key, shards)
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
	d.result("a client reads and writes %d times a second, all of it hits", rate)
	time.Sleep(2 * tellEvery)
	return l, nil
}

// changeVersion changes spec.version and tells, until every shard has followed, how
// the client and the operator fare.
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
	told := began
	m, err = d.Await(ctx, d.key, within, "memcached "+version, func(m *v1alpha1.Memcached) error {
		if now := time.Now(); now.Sub(told) >= tellEvery {
			c := l.Report().Sum(load.Span{From: told, Until: now})
			d.result("hit ratio %5.1f %%  %3.0f errors/s  %s", 100*c.Ratio(), float64(c.Errors)/now.Sub(told).Seconds(), progress(m))
			told = now
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
		if s.Start != v1alpha1.StartWarm {
			return fmt.Errorf("shard %s was to start with its items and started %q", s.Name, s.Start)
		}
	}
	d.result("all shards run %s after %.1f s, each started with its items", version, time.Since(began).Seconds())
	return nil
}

// progress is what the status says of the change.
func progress(m *v1alpha1.Memcached) string {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProgressing); c != nil {
		return c.Message
	}
	return "the status says nothing"
}
