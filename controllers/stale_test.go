package controllers

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// stale is a cache that lags behind: it has old objects, and lacks new ones.
type stale struct {
	client.Client
	// backups, restores and schedules as they were.
	backups   map[string]*v1alpha1.MemcachedBackup
	restores  map[string]*v1alpha1.MemcachedRestore
	schedules map[string]*v1alpha1.MemcachedScheduledBackup
	// lacks reports whether it has nothing of a kind yet.
	lacks func(any) bool
}

func (s stale) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	switch o := o.(type) {
	case *v1alpha1.MemcachedBackup:
		if old, ok := s.backups[key.Name]; ok {
			old.DeepCopyInto(o)
			return nil
		}
	case *v1alpha1.MemcachedRestore:
		if old, ok := s.restores[key.Name]; ok {
			old.DeepCopyInto(o)
			return nil
		}
	case *v1alpha1.MemcachedScheduledBackup:
		if old, ok := s.schedules[key.Name]; ok {
			old.DeepCopyInto(o)
			return nil
		}
	}
	if s.lacks != nil && s.lacks(o) {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return s.Client.Get(ctx, key, o, options...)
}

func (s stale) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if s.lacks != nil && s.lacks(list) {
		return nil
	}
	return s.Client.List(ctx, list, options...)
}

// lag makes the operator read from a stale cache.
func (w *world) lag(s stale) {
	s.Client = w.backups.APIReader.(client.Client)
	w.use(s)
}

// catchUp makes it read the current objects.
func (w *world) catchUp() { w.use(w.backups.APIReader.(client.Client)) }

func TestStaleBackupDoesNotStartAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toClaim)
	fresh := w.backup("nightly")
	w.killAfter(1)
	w.reconcile(w.backups, "nightly")
	running := w.backup("nightly")
	if running.Status.Phase != v1alpha1.TransferRunning || running.Status.JobUID != "" {
		t.Fatalf("it is %+v", running.Status)
	}
	w.converge()
	done := w.backup("nightly")
	w.wantEnd(done.Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	// its Job has expired
	w.must(admin.Delete(w.ctx, w.job(transfer.Backup, done), client.PropagationPolicy("Background")))
	for name, old := range map[string]*v1alpha1.MemcachedBackup{"before it began": fresh, "before its Job was seen": running} {
		w.lag(stale{backups: map[string]*v1alpha1.MemcachedBackup{"nightly": old}})
		if result := w.reconcile(w.backups, "nightly"); result.RequeueAfter == 0 {
			t.Errorf("%s: it is not requeued", name)
		}
		if w.job(transfer.Backup, done) != nil {
			t.Errorf("%s: it runs again", name)
		}
		if now := w.backup("nightly"); now.ResourceVersion != done.ResourceVersion {
			t.Errorf("%s: it is %+v", name, now.Status)
		}
	}
}

func TestObjectMissingFromCacheIsNotTreatedAsDeleted(t *testing.T) {
	t.Parallel()
	for name, lacks := range map[string]func(any) bool{
		"the Job":       func(o any) bool { _, ok := o.(*batchv1.Job); return ok },
		"its pods":      func(o any) bool { _, ok := o.(*corev1.PodList); return ok },
		"the Memcached": func(o any) bool { _, ok := o.(*v1alpha1.Memcached); return ok },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.memcached("cache", 1)
			w.lag(stale{lacks: lacks})
			w.create("MemcachedBackup", "nightly", toClaim)
			w.converge()
			w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
			if w.jobs.created["save"] != 1 {
				t.Errorf("%d pods were created", w.jobs.created["save"])
			}
		})
	}
}

func TestRestoreMissingFromCacheBlocksDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
	w.create("MemcachedRestore", "again", fromBackup)
	w.converge()
	w.delete(b)
	w.lag(stale{lacks: func(o any) bool { _, ok := o.(*v1alpha1.MemcachedRestoreList); return ok }})
	for range 3 {
		w.reconcile(w.backups, "nightly")
	}
	if w.job(transfer.Delete, b) != nil {
		t.Error("the snapshot is deleted while it is read")
	}
}

func TestRestoreSeesDeletionOfBackupDespiteStaleCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.lag(stale{backups: map[string]*v1alpha1.MemcachedBackup{"nightly": b}})
	w.delete(b)
	w.create("MemcachedRestore", "again", fromBackup)
	for range 3 {
		w.reconcile(w.restores, "again")
	}
	r := w.restore("again")
	w.wantEnd(r.Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonBackupDeleting, "")
	if w.job(transfer.Restore, r) != nil {
		t.Error("there is a Job")
	}
}

func TestStaleRestoreDoesNotStartAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backedUp(1)
	w.create("MemcachedRestore", "again", fromBackup)
	fresh := w.restore("again")
	w.killAfter(1)
	w.reconcile(w.restores, "again")
	running := w.restore("again")
	w.converge()
	done := w.restore("again")
	w.wantEnd(done.Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	w.must(admin.Delete(w.ctx, w.job(transfer.Restore, done), client.PropagationPolicy("Background")))
	for name, old := range map[string]*v1alpha1.MemcachedRestore{"before it began": fresh, "before its Job was seen": running} {
		w.lag(stale{restores: map[string]*v1alpha1.MemcachedRestore{"again": old}})
		w.reconcile(w.restores, "again")
		if now := w.restore("again"); w.job(transfer.Restore, done) != nil || now.ResourceVersion != done.ResourceVersion {
			t.Errorf("%s: it runs again, as %+v", name, now.Status)
		}
	}
}

func TestStaleRestoreCreatesNoServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("fresh", 2, bootstrapping("fill", v1alpha1.TransferRunning))
	w.create("MemcachedRestore", "fill", fromClaim)
	w.killAfter(1)
	w.reconcile(w.restores, "fill")
	running := w.restore("fill")
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	w.must(admin.Delete(w.ctx, w.job(transfer.Restore, running), client.PropagationPolicy("Background")))
	w.lag(stale{restores: map[string]*v1alpha1.MemcachedRestore{"fill": running}})
	w.reconcile(w.restores, "fill")
	var services corev1.ServiceList
	w.must(admin.List(w.ctx, &services, client.InNamespace(w.namespace)))
	if len(services.Items) != 0 {
		t.Errorf("%d Services were created for a restore that has finished", len(services.Items))
	}
}
