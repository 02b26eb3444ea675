// Package backup measures what a backup and a restore cost, on the cluster that KUBECONFIG names: their speed in comparison with a
// bare copy of the same items from one memcached to another, and what clients of the cache notice. It compares every item.
package backup

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/bench/dataset"
	"github.com/memcached-operator/memcached-operator/test/bench/load"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/bench/shard"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

//go:embed backup.md
var template string

// Benchmark measures a backup and a restore.
var Benchmark = report.Benchmark{Name: "backup", Summary: "what a backup and a restore cost", Template: template, Flags: func(flags *flag.FlagSet) report.Measure {
	o := &options{}
	flags.IntVar(&o.perShard, "items", 1_000_000, "items in each shard")
	flags.IntVar(&o.valueSize, "value", 500, "`bytes` of each value")
	flags.IntVar(&o.rate, "rate", 1000, "operations per second of the load on all shards")
	flags.DurationVar(&o.quiet, "quiet", 20*time.Second, "how long the load runs without a backup, for comparison")
	return o.run
}}

type options struct {
	// perShard is the number of items in each shard, with values of valueSize bytes.
	perShard, valueSize int
	// rate of the load on all shards, in operations per second.
	rate int
	// quiet is how long the load is measured without a backup.
	quiet time.Duration
}

func (o *options) run(ctx context.Context, r *report.Run) (report.Result, error) {
	if o.valueSize < 8 || o.valueSize > 100_000 || o.perShard < 1 {
		return report.Result{}, errors.New("-value must be from 8 to 100000, and -items at least 1")
	}
	c, err := cluster.Connect()
	if err != nil {
		return report.Result{}, err
	}
	machine, err := report.Cluster(ctx, c)
	if err != nil {
		return report.Result{}, err
	}
	var f figures
	err = report.InNamespace(ctx, c, "bench-backup-", func(namespace string) (err error) {
		b := &bench{Cluster: c, options: *o, say: r.Say, data: &dataset.Dataset{PerShard: o.perShard, Size: o.valueSize}, namespace: namespace}
		f, err = b.measure(ctx)
		return err
	})
	return report.Result{Machine: machine, Tables: []report.Table{f.table()}, Missed: f.check(), Values: map[string]any{
		"Shards": shards, "PerShard": report.Number(o.perShard), "Rate": report.Number(o.rate), "ValueSize": o.valueSize,
		"LoadKeys": report.Number(loadKeys), "LoadSize": load.ValueSize, "Quiet": o.quiet,
	}}, err
}

const (
	// shards of both Memcacheds.
	shards = 3
	owner  = client.FieldOwner("bench-backup")
	// loadKeys are the keys of the load, besides the items.
	loadKeys = 30_000
	// warmUp is how long the load runs until it counts: it opens its connections in this time.
	warmUp = 3 * time.Second
)

type bench struct {
	*cluster.Cluster
	options   options
	data      *dataset.Dataset
	say       func(format string, args ...any)
	namespace string
}

type figures struct {
	// Keys per second of the bare copy, of a backup and of a restore, without a limit.
	Bare, Backup, Restore float64
	// BackupTook and RestoreTook are from the object's creation until it is Complete, including the start of a pod.
	BackupTook, RestoreTook time.Duration
	// Stored is the size of the snapshot of Bytes of keys and values.
	Stored, Bytes int64
	// P99 of the load without a backup, during one at the default limit, which took DefaultTook, and during one without
	// a limit.
	P99Quiet, P99Default, P99Unlimited time.Duration
	DefaultTook                        time.Duration
	// Peak memory of the Jobs in bytes, without the kernel's page cache.
	PeakBackup, PeakRestore int64
	Compared                dataset.Comparison
}

// check returns an error if a figure does not meet the project's targets.
func (f figures) check() error {
	var wrong []error
	fail := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	fail(f.Backup < 0.8*f.Bare, "a backup reaches %.0f%% of the bare copy's keys/s, the target is 80%%", 100*f.Backup/f.Bare)
	fail(f.Restore < 0.8*f.Bare, "a restore reaches %.0f%% of the bare copy's keys/s, the target is 80%%", 100*f.Restore/f.Bare)
	fail(f.P99Default > 3*f.P99Quiet, "p99 during a backup at the default limit is %.1f times as long, the target is 3", float64(f.P99Default)/float64(f.P99Quiet))
	c := f.Compared
	fail(c.WrongValue+c.WrongFlags+c.WrongTTL > 0, "%d values, %d flags and %d times to live are wrong", c.WrongValue, c.WrongFlags, c.WrongTTL)
	fail(c.Missing*10_000 > c.Items, "%d of %d items are missing, the target is 0.01%%", c.Missing, c.Items)
	return errors.Join(wrong...)
}

// table has each figure with what it is compared with.
func (f figures) table() report.Table {
	return report.Table{
		{"", "", ""},
		{"keys per second, bare copy from one memcached to another", report.Number(f.Bare), ""},
		{"keys per second, backup without a limit", report.Number(f.Backup), ratio(f.Backup, f.Bare)},
		{"keys per second, restore without a limit", report.Number(f.Restore), ratio(f.Restore, f.Bare)},
		{"backup, from `kubectl create` until Complete", report.Seconds(f.BackupTook, 0), ""},
		{"restore, from `kubectl create` until Complete", report.Seconds(f.RestoreTook, 0), ""},
		{"p99 of the load without a backup", report.Milliseconds(f.P99Quiet, 2), ""},
		{"p99 during a backup at the default limit, which took " + report.Seconds(f.DefaultTook, 0), report.Milliseconds(f.P99Default, 2),
			ratio(float64(f.P99Default), float64(f.P99Quiet))},
		{"p99 during a backup without a limit", report.Milliseconds(f.P99Unlimited, 2), ratio(float64(f.P99Unlimited), float64(f.P99Quiet))},
		{"peak memory of the Job, backup and restore", report.Mebibytes(f.PeakBackup) + " and " + report.Mebibytes(f.PeakRestore), "of 128 MiB"},
		{"stored bytes of " + report.Mebibytes(f.Bytes) + " of random values", report.Mebibytes(f.Stored), ratio(float64(f.Stored), float64(f.Bytes))},
		{"items missing after the restore", report.Number(f.Compared.Missing), "of " + report.Number(f.Compared.Items)},
		{"wrong values, flags, times to live (± 2 s)", fmt.Sprintf("%d, %d, %d", f.Compared.WrongValue, f.Compared.WrongFlags, f.Compared.WrongTTL), ""},
	}
}

func ratio(value, of float64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("× %.2f", value/of)
}

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
	b.say("filling %d shards with %d items of %d bytes each", shards, b.options.perShard, b.data.Size)
	if err := b.data.Fill(ctx, from); err != nil {
		return f, err
	}
	switch filled, err := b.data.Compare(ctx, from, from); {
	case err != nil:
		return f, err
	case filled.Missing+filled.WrongValue+filled.WrongFlags+filled.WrongTTL > 0:
		return f, fmt.Errorf("the cache does not contain what was written to it: %+v", filled)
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

	b.say("running the load of %d operations per second; %s without a backup", b.options.rate, b.options.quiet)
	if err := cluster.Sleep(ctx, warmUp); err != nil {
		return f, err
	}
	quiet := load.Span{From: time.Now()}
	if err := cluster.Sleep(ctx, b.options.quiet); err != nil {
		return f, err
	}
	quiet.Until = time.Now()

	limited := backup("limited", store, nil)
	limitedSpan, err := b.transfer(ctx, limited)
	if err != nil {
		return f, err
	}
	f.DefaultTook = limitedSpan.Until.Sub(limitedSpan.From)

	b.say("copying every item from one Memcached to the other")
	began := time.Now()
	copied, err := shard.CopyAll(ctx, from, into)
	if err != nil {
		return f, fmt.Errorf("the bare copy: %w", err)
	}
	f.Bare = float64(copied) / time.Since(began).Seconds()
	b.say("%d items, %.0f per second", copied, f.Bare)

	fast := backup("fast", store, cluster.Unlimited())
	fastSpan, err := b.transfer(ctx, fast)
	if err != nil {
		return f, err
	}
	f.Backup = float64(fast.Status.Progress.ItemsPerSecond)
	f.BackupTook = fast.Status.CompletionTime.Sub(fast.CreationTimestamp.Time)
	f.Stored, f.Bytes = fast.Status.Snapshot.StoredBytes, fast.Status.Snapshot.Bytes
	if f.PeakBackup, err = b.peak(ctx, fast.Status.JobName); err != nil {
		return f, err
	}

	for _, address := range into {
		if err := items.Flush(address); err != nil {
			return f, err
		}
	}
	restore := &v1beta1.MemcachedRestore{
		ObjectMeta: metav1.ObjectMeta{Name: "fast"},
		Spec: v1beta1.MemcachedRestoreSpec{
			MemcachedRef: v1beta1.MemcachedReference{Name: "other"}, BackupRef: &v1beta1.BackupReference{Name: "fast"}, RateLimit: cluster.Unlimited(),
		},
	}
	if _, err := b.transfer(ctx, restore); err != nil {
		return f, err
	}
	f.Restore = float64(restore.Status.Progress.ItemsPerSecond)
	f.RestoreTook = restore.Status.CompletionTime.Sub(restore.CreationTimestamp.Time)
	if f.PeakRestore, err = b.peak(ctx, restore.Status.JobName); err != nil {
		return f, err
	}
	report := l.Stop()
	f.P99Quiet = report.Latency(quiet, 0.99)
	f.P99Default = report.Latency(limitedSpan, 0.99)
	f.P99Unlimited = report.Latency(fastSpan, 0.99)

	b.say("comparing every item")
	f.Compared, err = b.data.Compare(ctx, into, from)
	return f, err
}

// memcached creates a Memcached and returns its addresses once they answer.
func (b *bench) memcached(ctx context.Context, name string) ([]string, error) {
	// With the overhead of an item, and room for the first page of each slab class.
	memory := resource.NewQuantity(128<<20+int64(b.options.perShard)*int64(b.data.Size+180), resource.BinarySI)
	key := client.ObjectKey{Namespace: b.namespace, Name: name}
	if err := b.ApplyMemcached(ctx, key, v1beta1.MemcachedSpec{Size: new(int32(shards)), Memory: memory}, owner); err != nil {
		return nil, err
	}
	if _, err := b.Await(ctx, key, "available", cluster.Available); err != nil {
		return nil, err
	}
	return b.AnsweringAddresses(ctx, key, shards)
}

func (b *bench) claim(ctx context.Context) (v1beta1.SnapshotStore, error) {
	const name = "snapshots"
	err := b.Create(ctx, cluster.Claim(metav1.ObjectMeta{Namespace: b.namespace, Name: name}, "10Gi"))
	return v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: name}}, err
}

func backup(name string, store v1beta1.SnapshotStore, limit *v1beta1.RateLimit) *v1beta1.MemcachedBackup {
	return &v1beta1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta1.MemcachedBackupSpec{MemcachedRef: v1beta1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: limit},
	}
}

// transfer creates a MemcachedBackup or MemcachedRestore, waits until it is Complete, and returns the time of its copy.
func (b *bench) transfer(ctx context.Context, o client.Object) (load.Span, error) {
	o.SetNamespace(b.namespace)
	if err := b.Create(ctx, o); err != nil {
		return load.Span{}, fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
	}
	span := load.Span{}
	err := b.Complete(ctx, o, func(s *v1beta1.TransferStatus) {
		if span.From.IsZero() {
			span.From = time.Now()
		}
		b.say("%T %s: %d of %d items, %d%%, %d per second", o, o.GetName(), s.Progress.Items, s.Progress.TotalItems, s.Progress.Percent, s.Progress.ItemsPerSecond)
	})
	span.Until = time.Now()
	if span.From.IsZero() {
		span.From = o.GetCreationTimestamp().Time
	}
	return span, err
}

// peakMemory matches what the program of a Job logs when it exits.
var peakMemory = regexp.MustCompile(`peak memory[^0-9]*([0-9]+)`)

// peak returns the peak memory of the program of a Job in bytes.
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
		return 0, fmt.Errorf("the log of pod %s has no peak memory:\n%s", pods.Items[0].Name, log)
	}
	return strconv.ParseInt(string(match[1]), 10, 64)
}
