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
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// stale is a cache that lags behind: it still has old objects, and lacks new kinds.
type stale struct {
	client.Client
	// backups, restores and schedules as they were.
	backups   map[string]*v1alpha1.MemcachedBackup
	restores  map[string]*v1alpha1.MemcachedRestore
	schedules map[string]*v1alpha1.MemcachedScheduledBackup
	// lacks says of which kinds it has nothing yet.
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

// lag has the operator read from a cache that lags behind.
func (w *world) lag(s stale) {
	s.Client = w.backups.Live.(client.Client)
	w.use(s)
}

// catchUp has it read what there is.
func (w *world) catchUp() { w.use(w.backups.Live.(client.Client)) }

func TestAStaleBackupDoesNotBeginAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toClaim)
	fresh := w.backup("nightly")
	w.reconcile(w.backups, "nightly")
	running := w.backup("nightly")
	if running.Status.Phase != v1alpha1.RunRunning || running.Status.JobUID != "" {
		t.Fatalf("it is %+v", running.Status)
	}
	w.settle()
	done := w.backup("nightly")
	w.wantEnd(done.Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	// its Job has expired
	w.must(admin.Delete(w.ctx, w.job(snapshotjob.Backup, done), client.PropagationPolicy("Background")))
	for name, old := range map[string]*v1alpha1.MemcachedBackup{"before it began": fresh, "before its Job was seen": running} {
		w.lag(stale{backups: map[string]*v1alpha1.MemcachedBackup{"nightly": old}})
		if result := w.reconcile(w.backups, "nightly"); result.RequeueAfter == 0 {
			t.Errorf("%s: it is not looked at again", name)
		}
		if w.job(snapshotjob.Backup, done) != nil {
			t.Errorf("%s: it runs again", name)
		}
		if now := w.backup("nightly"); now.ResourceVersion != done.ResourceVersion {
			t.Errorf("%s: it is %+v", name, now.Status)
		}
	}
}

func TestAJobOrPodThatTheCacheLacksIsNotTakenForGone(t *testing.T) {
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
			w.settle()
			w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
			if w.jobs.made["save"] != 1 {
				t.Errorf("%d pods were made", w.jobs.made["save"])
			}
		})
	}
}

func TestARestoreThatTheCacheLacksStillHoldsADeletionBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.jobs.hang = map[snapshotapi.Action]bool{snapshotapi.ActionLoad: true}
	w.create("MemcachedRestore", "again", fromBackup)
	w.settle()
	w.delete(b)
	w.lag(stale{lacks: func(o any) bool { _, ok := o.(*v1alpha1.MemcachedRestoreList); return ok }})
	for range 3 {
		w.reconcile(w.backups, "nightly")
	}
	if w.job(snapshotjob.Delete, b) != nil {
		t.Error("the snapshot is deleted while it is read")
	}
}

func TestARestoreLearnsThatItsBackupIsBeingDeletedDespiteItsCache(t *testing.T) {
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
	w.wantEnd(r.Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonBackupDeleting, "")
	if w.job(snapshotjob.Restore, r) != nil {
		t.Error("there is a Job")
	}
}

func TestAStaleRestoreDoesNotBeginAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backedUp(1)
	w.create("MemcachedRestore", "again", fromBackup)
	fresh := w.restore("again")
	w.reconcile(w.restores, "again")
	running := w.restore("again")
	w.settle()
	done := w.restore("again")
	w.wantEnd(done.Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	w.must(admin.Delete(w.ctx, w.job(snapshotjob.Restore, done), client.PropagationPolicy("Background")))
	for name, old := range map[string]*v1alpha1.MemcachedRestore{"before it began": fresh, "before its Job was seen": running} {
		w.lag(stale{restores: map[string]*v1alpha1.MemcachedRestore{"again": old}})
		w.reconcile(w.restores, "again")
		if now := w.restore("again"); w.job(snapshotjob.Restore, done) != nil || now.ResourceVersion != done.ResourceVersion {
			t.Errorf("%s: it runs again, as %+v", name, now.Status)
		}
	}
}

func TestAStaleRestoreMakesNoServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("fresh", 2, bootstrapping("fill", v1alpha1.RunRunning))
	w.create("MemcachedRestore", "fill", fromClaim)
	w.reconcile(w.restores, "fill")
	running := w.restore("fill")
	w.settle()
	w.wantEnd(w.restore("fill").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	w.must(admin.Delete(w.ctx, w.job(snapshotjob.Restore, running), client.PropagationPolicy("Background")))
	w.lag(stale{restores: map[string]*v1alpha1.MemcachedRestore{"fill": running}})
	w.reconcile(w.restores, "fill")
	var services corev1.ServiceList
	w.must(admin.List(w.ctx, &services, client.InNamespace(w.namespace)))
	if len(services.Items) != 0 {
		t.Errorf("%d Services are made for a restore that has ended", len(services.Items))
	}
}
