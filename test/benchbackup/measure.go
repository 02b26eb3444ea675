package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/copyloop"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/load"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

const (
	owner  = client.FieldOwner("bench-backup")
	within = 3 * time.Minute
	// ends bounds a backup or a restore.
	ends = time.Hour
	// loadKeys are the keys of the load, besides the items.
	loadKeys = 30_000
	// settle is how long the load runs before it counts: connections are made in
	// that time.
	settle = 3 * time.Second
)

// bench measures in a namespace of its own.
type bench struct {
	*cluster.Cluster
	options   options
	data      *dataset
	namespace string
	began     time.Time
}

// figures are what was measured.
type figures struct {
	// Keys a second of the bare copy, of a backup and of a restore, without a limit.
	Bare, Backup, Restore float64
	// BackupTook and RestoreTook are from the object's creation until it is Complete,
	// the start of a pod included.
	BackupTook, RestoreTook time.Duration
	// Stored is how many bytes the snapshot takes, of Bytes of keys and values.
	Stored, Bytes int64
	// P99 of the load without a backup, beside one at the default limit, and beside one
	// without a limit.
	P99Quiet, P99Default, P99Unlimited time.Duration
	// DefaultTook is how long the backup at the default limit took.
	DefaultTook time.Duration
	// Peak memory of the Jobs, in bytes: what they held, without the pages that the
	// kernel keeps of files.
	PeakBackup, PeakRestore int64
	Compared                comparison
}

// judge is an error where a figure is not what the project promises.
func (f figures) judge() error {
	var wrong []error
	fail := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	fail(f.Backup < 0.8*f.Bare, "a backup reaches %.0f %% of the bare copy's keys/s, at least 80 %% is promised", 100*f.Backup/f.Bare)
	fail(f.Restore < 0.8*f.Bare, "a restore reaches %.0f %% of the bare copy's keys/s, at least 80 %% is promised", 100*f.Restore/f.Bare)
	fail(f.P99Default > 3*f.P99Quiet, "p99 beside a backup at the default limit is %.1f times as long, at most 3 is promised", float64(f.P99Default)/float64(f.P99Quiet))
	c := f.Compared
	fail(c.WrongValue+c.WrongFlags+c.WrongTTL > 0, "%d values, %d flags and %d times to live are wrong", c.WrongValue, c.WrongFlags, c.WrongTTL)
	fail(c.Missing*10_000 > c.Items, "%d of %d items are missing, at most 0.01 %% is promised", c.Missing, c.Items)
	return errors.Join(wrong...)
}

func (b *bench) say(format string, args ...any) {
	fmt.Printf("%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

func (b *bench) makeSpace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bench-backup-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := b.Create(ctx, namespace); err != nil {
		return fmt.Errorf("making a namespace: %w", err)
	}
	b.namespace = namespace.Name
	return nil
}

func (b *bench) removeSpace(ctx context.Context) error {
	return errors.Join(
		b.DeleteAllOf(ctx, &v1alpha1.Memcached{}, client.InNamespace(b.namespace)),
		b.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}),
	)
}

// measure does all, one after the other.
func (b *bench) measure(ctx context.Context) (figures, error) {
	f := figures{}
	from, err := b.memcached(ctx, "cache")
	if err != nil {
		return f, err
	}
	into, err := b.memcached(ctx, "other")
	if err != nil {
		return f, err
	}
	store, err := b.claim(ctx)
	if err != nil {
		return f, err
	}
	b.say("filling %d shards with %d items of %d bytes each", shards, b.options.perShard, b.data.size)
	if err := b.data.fill(ctx, from); err != nil {
		return f, err
	}
	switch held, err := b.data.compare(ctx, from, from); {
	case err != nil:
		return f, err
	case held.Missing+held.WrongValue+held.WrongFlags+held.WrongTTL > 0:
		return f, fmt.Errorf("the cache itself does not hold what was written to it: %+v", held)
	}
	l, err := load.New(load.Config{Addresses: from, Keys: loadKeys, Rate: b.options.rate, Seed: 1})
	if err != nil {
		return f, err
	}
	if err := l.Fill(ctx); err != nil {
		return f, err
	}
	l.Start()
	defer l.Stop()

	b.say("the load of %d operations a second runs; %s without a backup", b.options.rate, b.options.quiet)
	if err := sleep(ctx, settle); err != nil {
		return f, err
	}
	quiet := load.Span{From: time.Now()}
	if err := sleep(ctx, b.options.quiet); err != nil {
		return f, err
	}
	quiet.Until = time.Now()

	gentle := backup("gentle", store, nil)
	limited, err := b.run(ctx, gentle)
	if err != nil {
		return f, err
	}
	f.DefaultTook = limited.Until.Sub(limited.From)

	b.say("a bare copy of every item from one Memcached into the other")
	began := time.Now()
	copied, err := bareCopy(ctx, from, into)
	if err != nil {
		return f, fmt.Errorf("the bare copy: %w", err)
	}
	f.Bare = float64(copied) / time.Since(began).Seconds()
	b.say("%d items, %.0f a second", copied, f.Bare)

	fast := backup("fast", store, unlimited())
	unbound, err := b.run(ctx, fast)
	if err != nil {
		return f, err
	}
	f.Backup = float64(fast.Status.Progress.ItemsPerSecond)
	f.BackupTook = fast.Status.CompletionTime.Sub(fast.CreationTimestamp.Time)
	f.Stored, f.Bytes = fast.Status.Snapshot.StoredBytes, fast.Status.Snapshot.Bytes
	if f.PeakBackup, err = b.peak(ctx, fast.Status.Job); err != nil {
		return f, err
	}

	for _, address := range into {
		if err := items.Flush(address); err != nil {
			return f, err
		}
	}
	restore := &v1alpha1.MemcachedRestore{
		ObjectMeta: metav1.ObjectMeta{Name: "fast"},
		Spec: v1alpha1.MemcachedRestoreSpec{
			Memcached: v1alpha1.MemcachedReference{Name: "other"}, Backup: &v1alpha1.BackupReference{Name: "fast"}, RateLimit: unlimited(),
		},
	}
	if _, err := b.run(ctx, restore); err != nil {
		return f, err
	}
	f.Restore = float64(restore.Status.Progress.ItemsPerSecond)
	f.RestoreTook = restore.Status.CompletionTime.Sub(restore.CreationTimestamp.Time)
	if f.PeakRestore, err = b.peak(ctx, restore.Status.Job); err != nil {
		return f, err
	}
	report := l.Stop()
	f.P99Quiet = report.Sum(quiet).Latencies.Quantile(0.99)
	f.P99Default = report.Sum(limited).Latencies.Quantile(0.99)
	f.P99Unlimited = report.Sum(unbound).Latencies.Quantile(0.99)

	b.say("comparing every item")
	f.Compared, err = b.data.compare(ctx, into, from)
	return f, err
}

// bareCopy copies all shards at once and returns how many items there were.
func bareCopy(ctx context.Context, from, into []string) (int64, error) {
	var items atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for shard := range from {
		group.Go(func() error {
			n, err := copyloop.Copy(ctx, from[shard], into[shard])
			items.Add(int64(n))
			return err
		})
	}
	err := group.Wait()
	return items.Load(), err
}

// memcached makes a Memcached and returns its addresses, once they answer.
func (b *bench) memcached(ctx context.Context, name string) ([]string, error) {
	// what an item takes besides its value, and room for the pages that each size of
	// chunks has from the start
	memory := resource.NewQuantity(128<<20+int64(b.options.perShard)*int64(b.data.size+180), resource.BinarySI)
	m := memcachedac.Memcached(name, b.namespace).WithSpec(memcachedac.MemcachedSpec().WithSize(shards).WithMemory(*memory))
	if err := b.Apply(ctx, m, owner, client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("applying Memcached %s: %w", name, err)
	}
	key := client.ObjectKey{Namespace: b.namespace, Name: name}
	if _, err := b.Await(ctx, key, within, "available", cluster.Available); err != nil {
		return nil, err
	}
	addresses, err := b.Addresses(ctx, key, shards)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		// the node's proxy learns of a pod a moment after it is ready
		if err := cluster.Eventually(ctx, within, "answers at "+address, func(ctx context.Context) error { return probe.Ask(ctx, address) }); err != nil {
			return nil, err
		}
	}
	return addresses, nil
}

func (b *bench) claim(ctx context.Context) (v1alpha1.SnapshotStore, error) {
	const name = "snapshots"
	err := b.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
		},
	})
	return v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: name}}, err
}

func unlimited() *v1alpha1.RateLimit {
	return &v1alpha1.RateLimit{ItemsPerSecond: new(int32(0)), MebibytesPerSecond: new(int32(0))}
}

func backup(name string, store v1alpha1.SnapshotStore, limit *v1alpha1.RateLimit) *v1alpha1.MemcachedBackup {
	return &v1alpha1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MemcachedBackupSpec{Memcached: v1alpha1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: limit},
	}
}

// run makes a MemcachedBackup or MemcachedRestore, waits until it is Complete, and
// returns when its copy went on.
func (b *bench) run(ctx context.Context, o client.Object) (load.Span, error) {
	o.SetNamespace(b.namespace)
	if err := b.Create(ctx, o); err != nil {
		return load.Span{}, fmt.Errorf("making %T %s: %w", o, o.GetName(), err)
	}
	span := load.Span{}
	err := b.Complete(ctx, o, ends, func(s *v1alpha1.RunStatus) {
		if span.From.IsZero() {
			span.From = time.Now()
		}
		b.say("%T %s: %d of %d items, %d %%, %d a second", o, o.GetName(), s.Progress.Items, s.Progress.TotalItems, s.Progress.Percent, s.Progress.ItemsPerSecond)
	})
	span.Until = time.Now()
	if span.From.IsZero() {
		span.From = o.GetCreationTimestamp().Time
	}
	return span, err
}

// peakMemory is what a Job's program tells at its end.
var peakMemory = regexp.MustCompile(`peak memory[^0-9]*([0-9]+)`)

// peak returns the most memory that the program of a Job held, in bytes.
func (b *bench) peak(ctx context.Context, job string) (int64, error) {
	var pods corev1.PodList
	if err := b.List(ctx, &pods, client.InNamespace(b.namespace), client.MatchingLabels{batchv1.JobNameLabel: job}); err != nil {
		return 0, fmt.Errorf("listing the pods of Job %s: %w", job, err)
	}
	if len(pods.Items) != 1 {
		return 0, fmt.Errorf("job %s has %d pods", job, len(pods.Items))
	}
	log, err := b.Set.CoreV1().Pods(b.namespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the log of pod %s: %w", pods.Items[0].Name, err)
	}
	match := peakMemory.FindSubmatch(log)
	if match == nil {
		return 0, fmt.Errorf("the log of pod %s tells no peak memory:\n%s", pods.Items[0].Name, log)
	}
	return strconv.ParseInt(string(match[1]), 10, 64)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
