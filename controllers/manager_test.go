package controllers

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// TestManagerRunsAllControllers runs all controllers as main does, with their cache and
// their permissions: only watches trigger them.
func TestManagerRunsAllControllers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mgr, err := ctrl.NewManager(rest.CopyConfig(asSelf), ctrl.Options{Scheme: scheme, Cache: CacheOptions(w.namespace), Metrics: metricsserver.Options{BindAddress: "0"}})
	w.must(err)
	w.must(SetupWithManager(mgr, Options{Image: "operator:1", DefaultImage: "docker.io/library/memcached:1.6.45", Clock: clock.RealClock{}}))
	ctx, stop := context.WithCancel(w.ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	defer func() {
		stop()
		w.must(<-stopped)
	}()
	eventually := func(what string, holds func() bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(w.ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			w.jobs.tick()
			return holds(), nil
		})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	w.create("MemcachedRestore", "early", fromBackup) // fails: there is no such Memcached
	eventually("a restore without a Memcached fails", func() bool { return w.restore("early").Status.Phase == v1alpha1.TransferFailed })
	w.create("Memcached", "cache", "{size: 2}")
	w.create("MemcachedBackup", "nightly", toGo)
	eventually("the backup runs", func() bool { return w.backup("nightly").Status.Reason == v1alpha1.ReasonCopying })
	w.create("MemcachedRestore", "again", fromBackup)
	eventually("the restore waits for it", func() bool { return w.restore("again").Status.Reason == v1alpha1.ReasonBackupNotComplete })
	w.jobs.hang = nil
	eventually("the backup is Complete", func() bool { return w.backup("nightly").Status.Phase == v1alpha1.TransferComplete })
	eventually("the restore is Complete", func() bool { return w.restore("again").Status.Phase == v1alpha1.TransferComplete })
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
	w.create("MemcachedRestore", "first", fromBackup)
	eventually("the first restore runs", func() bool { return w.restore("first").Status.Reason == v1alpha1.ReasonCopying })
	w.create("MemcachedRestore", "second", fromBackup)
	eventually("the second restore waits for it", func() bool { return w.restore("second").Status.Reason == v1alpha1.ReasonRestoreRunning })
	w.jobs.hang = nil
	eventually("the second restore is Complete", func() bool { return w.restore("second").Status.Phase == v1alpha1.TransferComplete })
	b := w.backup("nightly")
	eventually("the Job expires", func() bool {
		job := w.job(transfer.Backup, b)
		return job != nil && job.Spec.TTLSecondsAfterFinished != nil
	})
	families, err := metrics.Registry.Gather()
	w.must(err)
	found := false
	for _, family := range families {
		found = found || family.GetName() == "memcached_operator_backup_last_completion_timestamp_seconds"
	}
	if !found {
		t.Error("the metrics lack the backup")
	}
	_, spec := w.soon("")
	w.create("MemcachedScheduledBackup", "later", spec)
	eventually("the schedule reports its next run", func() bool { return w.schedule("later").Status.NextScheduleTime != nil })
	w.delete(b)
	eventually("the backup is deleted with its snapshot", func() bool { return w.isDeleted(b) })
	if len(w.jobs.snapshots) != 0 {
		t.Errorf("the store contains %v", w.jobs.snapshots)
	}
}
