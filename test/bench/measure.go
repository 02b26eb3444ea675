package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/load"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

const (
	// within bounds what a cluster does within seconds.
	within = 3 * time.Minute
	// settle is how long the load runs before its hit ratio is taken: connections
	// are made in that time.
	settle = 2 * time.Second
	// back is the share of the hit ratio before the change that counts as its being
	// back, over a mean of backOver.
	back     = 0.99
	backOver = 5 * time.Second
	// tail is how long the load goes on after that.
	tail = 3 * time.Second
	// askEvery is how long two looks at the upgrade are apart, and so how exactly
	// its duration is known.
	askEvery = 200 * time.Millisecond
	// tellEvery is how long two lines about a run are apart, until the upgrade is
	// over; after that, tellAfter.
	tellEvery, tellAfter = 5 * time.Second, 15 * time.Second
	// unread is how many items a shard holds on average which the load never asks
	// for, so that nothing but the upgrade decides how many are left.
	unread = 10_000
)

// bench measures variants one after the other.
type bench struct {
	*cluster.Cluster
	options options
	say     func(format string, args ...any)
}

// result is what was seen of a variant.
type result struct {
	variant variant
	report  load.Report
	// change is when the upgrade was asked for.
	change time.Time
	// took is how long it went on.
	took time.Duration
	// until is the end of what is compared.
	until time.Time
	// unread of items that the load does not ask for, and how many of them were
	// kept.
	unread, kept int
}

// measure runs a variant in a namespace of its own, which is gone afterwards.
func (b *bench) measure(ctx context.Context, v variant) (r result, err error) {
	b.say("\n%s: %s", v.name, v.change)
	in, err := b.space(ctx)
	if err != nil {
		return result{}, err
	}
	defer func() {
		// also where ctx has ended: nothing is to be left on the cluster
		err = errors.Join(err, in.remove(context.WithoutCancel(ctx)))
	}()
	addresses, err := b.start(ctx, v, in)
	if err != nil {
		return result{}, err
	}
	set := items.New("unread", shards*unread, addresses...)
	defer set.Close()
	if err := set.Write(); err != nil {
		return result{}, err
	}
	r, err = b.upgrade(ctx, v, in, addresses)
	if err != nil {
		return result{}, err
	}
	r.unread = shards * unread
	if r.kept, err = set.Count(); err != nil {
		return result{}, err
	}
	if n := r.report.Sum(load.Span{From: r.report.Began, Until: r.until}).Wrong; n > 0 {
		return result{}, fmt.Errorf("%d gets were answered with another key's value", n)
	}
	return r, nil
}

// start makes the shards of a variant and returns their addresses, once they
// answer.
func (b *bench) start(ctx context.Context, v variant, in space) ([]string, error) {
	for _, version := range []string{b.options.from, b.options.to} {
		if err := in.pull(ctx, version); err != nil {
			return nil, err
		}
	}
	if err := v.create(ctx, in, b.options.from); err != nil {
		return nil, err
	}
	err := cluster.Eventually(ctx, within, "the shards", func(ctx context.Context) error { return v.settled(ctx, in, b.options.from) })
	if err != nil {
		return nil, err
	}
	addresses, err := in.Addresses(ctx, client.ObjectKey{Namespace: in.namespace, Name: name}, shards)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		// the node's proxy learns of a pod a moment after it is ready
		err := cluster.Eventually(ctx, within, "answers at "+address, func(ctx context.Context) error { return probe.Ask(ctx, address) })
		if err != nil {
			return nil, err
		}
	}
	return addresses, nil
}

// upgrade runs the load and, beside it, the change.
func (b *bench) upgrade(ctx context.Context, v variant, in space, addresses []string) (result, error) {
	l, err := load.New(load.Config{Addresses: addresses, Keys: shards * b.options.keys, Rate: b.options.rate, Seed: b.options.seed})
	if err != nil {
		return result{}, err
	}
	if err := l.Fill(ctx); err != nil {
		return result{}, err
	}
	l.Start()
	defer l.Stop()
	// at the beginning of a bucket, so that each is before the change or after it
	change := l.Report().Began.Add(b.options.before.Round(load.Every))
	w := &watch{bench: b, load: l, change: change, told: time.Now(), every: tellEvery}
	for time.Until(change) > askEvery {
		if err := w.rest(ctx, ""); err != nil {
			return result{}, err
		}
	}
	time.Sleep(time.Until(change))
	b.say("  %s  the change is asked for", w.clock())
	if err := v.upgrade(ctx, in, b.options.to); err != nil {
		return result{}, err
	}

	r := result{variant: v, change: change}
	for r.took == 0 {
		err := v.settled(ctx, in, b.options.to)
		switch {
		case err == nil:
			r.took = time.Since(change)
			b.say("  %s  upgraded", w.clock())
		case time.Since(change) > b.options.bound:
			return result{}, fmt.Errorf("the upgrade is not over after %s: %w", b.options.bound, err)
		default:
			if err := w.rest(ctx, err.Error()); err != nil {
				return result{}, err
			}
		}
	}
	w.every = tellAfter
	for time.Since(change) < b.options.after || !w.enough(change.Add(r.took)) {
		if err := w.rest(ctx, ""); err != nil {
			return result{}, err
		}
	}
	r.report = l.Stop()
	// what was due in the last moment was cut off
	r.until = r.report.At(r.report.Buckets() - 1)
	return r, nil
}

// watch tells how a run goes.
type watch struct {
	*bench
	load   *load.Load
	change time.Time
	// told is when the last line was written, every how long until the next.
	told  time.Time
	every time.Duration
}

// clock is the time since the change.
func (w *watch) clock() string { return fmt.Sprintf("%+6.1f s", time.Since(w.change).Seconds()) }

// rest waits a moment, and tells how things stand when that is due.
func (w *watch) rest(ctx context.Context, state string) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(askEvery):
	}
	if time.Since(w.told) < w.every {
		return nil
	}
	now := time.Now()
	last := w.load.Report().Sum(load.Span{From: w.told, Until: now})
	line := fmt.Sprintf("  %s  hit ratio %5.1f %%  errors %4.0f/s  %s", w.clock(), 100*last.Ratio(), float64(last.Errors)/now.Sub(w.told).Seconds(), state)
	w.say("%s", strings.TrimRight(line, " "))
	w.told = now
	return nil
}

// enough reports whether the load has run for long enough after an upgrade that
// ended at done.
func (w *watch) enough(done time.Time) bool {
	if time.Since(w.change) > w.options.bound {
		return true
	}
	r := w.load.Report()
	ratio := r.Sum(load.Span{From: r.Began.Add(settle), Until: w.change}).Ratio()
	at, ok := r.Back(done, back*ratio, backOver)
	return ok && time.Since(at) > backOver+tail
}

// space makes a namespace.
func (b *bench) space(ctx context.Context) (space, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bench-upgrade-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := b.Create(ctx, namespace); err != nil {
		return space{}, fmt.Errorf("making a namespace: %w", err)
	}
	return space{Cluster: b.Cluster, namespace: namespace.Name}, nil
}

// remove deletes the namespace and waits until it is gone, so that nothing of it
// runs beside the next variant. The Memcacheds go first and their Services with
// them: a shard serves on while its Service is there and nobody else answers at it.
func (s space) remove(ctx context.Context) error {
	if err := s.DeleteAllOf(ctx, &v1alpha1.Memcached{}, client.InNamespace(s.namespace)); err != nil {
		return fmt.Errorf("deleting the Memcacheds of %s: %w", s.namespace, err)
	}
	if err := s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		return fmt.Errorf("deleting namespace %s: %w", s.namespace, err)
	}
	return s.NamespaceGone(ctx, s.namespace)
}

// pull has every node fetch the image of a version, so that no variant waits for a
// registry.
func (s space) pull(ctx context.Context, version string) error {
	var nodes corev1.NodeList
	if err := s.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for _, node := range nodes.Items {
		if node.Spec.Unschedulable {
			continue
		}
		spec := podTemplate(nil, version).Spec
		spec.NodeName = node.Name
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "pull-"}, Spec: spec}
		if err := s.create(ctx, pod); err != nil {
			return err
		}
		err := cluster.Eventually(ctx, within, fmt.Sprintf("memcached %s on %s", version, node.Name), func(ctx context.Context) error {
			if err := s.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return err
			}
			if !isReady(pod) {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := s.Delete(ctx, pod); err != nil {
			return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
		}
	}
	return nil
}
