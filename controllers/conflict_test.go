package controllers

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// What changed since it was read is reconciled again.

func TestFinalizerIsNotWrittenToStaleBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toGo)
	old := w.backup("nightly")
	changed := old.DeepCopy()
	controllerutil.AddFinalizer(changed, "example.com/waits")
	w.must(admin.Update(w.ctx, changed))

	w.lag(stale{backups: map[string]*v1alpha1.MemcachedBackup{"nightly": old}})
	if result := w.reconcile(w.backups, "nightly"); result.RequeueAfter == 0 {
		t.Error("it is not requeued")
	}
	if got := w.backup("nightly").Finalizers; len(got) != 1 || got[0] != "example.com/waits" {
		t.Errorf("the finalizers are %q", got)
	}
	w.catchUp()
	w.reconcile(w.backups, "nightly")
	if got := w.backup("nightly").Finalizers; len(got) != 2 {
		t.Errorf("after the next reconcile the finalizers are %q", got)
	}
}

// lateList is a cache whose list of backups is stale.
type lateList struct {
	client.Client
	backups *v1alpha1.MemcachedBackupList
}

func (l lateList) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if backups, ok := list.(*v1alpha1.MemcachedBackupList); ok {
		l.backups.DeepCopyInto(backups)
		return nil
	}
	return l.Client.List(ctx, list, options...)
}

func TestScheduleDoesNotDeleteRecreatedBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	run, spec := w.soon("retention: {successfulBackupsHistoryLimit: 1},")
	var names []string
	for day := range 2 {
		name := runName("nightly", run.Add(time.Duration(day-3)*24*time.Hour))
		names = append(names, name)
		w.create("MemcachedBackup", name, toClaim, func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{v1alpha1.LabelSchedule: "nightly"})
		})
	}
	w.converge()
	before := &v1alpha1.MemcachedBackupList{}
	w.must(admin.List(w.ctx, before, client.InNamespace(w.namespace)))
	w.must(admin.Delete(w.ctx, w.backup(names[0])))
	w.create("MemcachedBackup", names[0], toClaim)
	w.create("MemcachedScheduledBackup", "nightly", spec)

	w.use(lateList{w.backups.APIReader.(client.Client), before})
	w.reconcile(w.schedules, "nightly")
	if !w.exists(names[0], &v1alpha1.MemcachedBackup{}) {
		t.Error("the backup that took the name was deleted")
	}
	w.catchUp()
	w.must(admin.Delete(w.ctx, w.backup(names[0])))
	w.create("MemcachedBackup", names[0], toClaim, func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{v1alpha1.LabelSchedule: "nightly"})
	})
	w.converge()
	if w.exists(names[0], &v1alpha1.MemcachedBackup{}) == w.exists(names[1], &v1alpha1.MemcachedBackup{}) {
		t.Error("one of two is kept, as the cache has caught up")
	}
}

func TestRestoreJobGetsSpec(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 3)
	w.create("MemcachedRestore", "some", "{memcachedRef: {name: cache}, shards: [0, 2], existingItems: Replace, maxTTLSeconds: 3600, maxAgeSeconds: 86400, "+
		"snapshot: {path: a/b/c, store: {s3: {bucket: shared, credentialsSecretName: aws}}}}")
	w.converge()
	r := w.restore("some")
	_, task := taskOf(w.job(transfer.Restore, r))
	want := &snapshotwire.Load{Replace: true, Shards: []int{0, 2}, MaxTTL: time.Hour, MaxAge: 24 * time.Hour}
	if diff := cmp.Diff(want, task.Load); diff != "" {
		t.Errorf("the task (-want +got):\n%s", diff)
	}
}
