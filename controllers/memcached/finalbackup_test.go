package memcached

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
)

const withFinalBackup = "{size: 2, deletionPolicy: Backup, finalBackup: {store: {persistentVolumeClaim: {claimName: store}}, rateLimit: {itemsPerSecond: 7}, deadlineSeconds: 300}}"

// advanceBackups makes one step with each backup: to Running, and then to a phase. Running
// leaves them there.
func (env *testEnv) advanceBackups(phase v1alpha1.TransferPhase) {
	env.Helper()
	for _, backup := range env.listBackups() {
		switch s := &backup.Status; {
		case s.Phase == "":
			s.Phase, s.Progress = v1alpha1.TransferRunning, &v1alpha1.TransferProgress{Items: 860, TotalItems: 2000, Percent: 43}
		case s.Phase == v1alpha1.TransferRunning && phase == v1alpha1.TransferComplete:
			s.Phase, s.Snapshot = phase, &v1alpha1.SnapshotStatus{Path: "p", TakenAt: metav1.Now(), Items: 2000}
		case s.Phase == v1alpha1.TransferRunning && phase == v1alpha1.TransferFailed:
			s.Phase, s.Message = phase, "the store is full"
		default:
			continue
		}
		env.must(env.admin.Status().Update(env.ctx, &backup))
	}
}

func (env *testEnv) listBackups() []v1alpha1.MemcachedBackup {
	env.Helper()
	var backups v1alpha1.MemcachedBackupList
	env.must(env.admin.List(env.ctx, &backups, client.InNamespace(env.namespace)))
	return backups.Items
}

// step reconciles a Memcached once and returns it, or nil when it is deleted. An error is no
// failure.
func (env *testEnv) step(name string) *v1alpha1.Memcached {
	env.Helper()
	key := types.NamespacedName{Namespace: env.namespace, Name: name}
	if _, err := env.reconciler.Reconcile(env.ctx, ctrl.Request{NamespacedName: key}); err != nil {
		env.Logf("reconciling: %v", err)
	}
	m := &v1alpha1.Memcached{}
	if err := env.admin.Get(env.ctx, key, m); err != nil {
		env.must(client.IgnoreNotFound(err))
		return nil
	}
	return m
}

func TestFinalBackupIsTakenOnceWhenTheOperatorIsKilledAfterAnyWrite(t *testing.T) {
	run := func(t *testing.T, writesLeft int64) (summary string, writes int64, killed bool) {
		cluster := newReadyCluster(t, "cache", withFinalBackup)
		pods := cluster.podsCreated
		cluster.must(cluster.admin.Delete(cluster.ctx, cluster.get("cache")))
		before := cluster.writes.Load()
		if writesLeft > 0 {
			cluster.writesLeft.Store(writesLeft)
		}
		for range 20 {
			m := cluster.step("cache")
			if cluster.writesLeft.Load() <= 0 {
				cluster.writesLeft.Store(1 << 60)
				killed = true
			}
			if m == nil {
				break
			}
			cluster.advanceBackups(v1alpha1.TransferComplete)
			cluster.tick()
			cluster.clock.Step(time.Second)
		}
		for _, b := range cluster.listBackups() {
			summary += fmt.Sprintf("%s of %s: %s, owned by %d; ", strings.TrimRight(b.Name, "0123456789abcdef"), b.Spec.MemcachedRef.Name, b.Status.Phase, len(b.OwnerReferences))
		}
		summary += fmt.Sprintf("deleted %t, pods created %d", !cluster.exists("cache", &v1alpha1.Memcached{}), cluster.podsCreated-pods)
		return summary, cluster.writes.Load() - before, killed
	}
	want, writes, _ := run(t, 0)
	if line := "cache-final- of cache: Complete, owned by 0; deleted true, pods created 0"; want != line {
		t.Fatalf("got %q, want %q", want, line)
	}
	killAfterEachWrite(t, want, writes, run)
}

func TestShardsKeepServingDuringTheFinalBackup(t *testing.T) {
	cluster := newReadyCluster(t, "cache", withFinalBackup)
	m := cluster.get("cache")
	cluster.must(cluster.admin.Delete(cluster.ctx, m))
	cluster.step("cache")
	backups := cluster.listBackups()
	if len(backups) != 1 || backups[0].Name != "cache-final-"+string(m.UID[:8]) {
		t.Fatalf("backups: %+v", backups)
	}
	s := backups[0].Spec
	if s.MemcachedRef.Name != "cache" || s.Store.PersistentVolumeClaim.ClaimName != "store" || *s.RateLimit.ItemsPerSecond != 7 ||
		*s.DeadlineSeconds != 300 || s.DeletionPolicy != v1alpha1.SnapshotRetain {
		t.Errorf("spec %+v", s)
	}
	cluster.advanceBackups(v1alpha1.TransferRunning)
	m = cluster.step("cache")
	cluster.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBackingUp, "has copied 43% of 2,000 items; the Memcached is deleted when it is done, or at ")
	cluster.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	if m.Status.Phase != v1alpha1.PhaseDeleting {
		t.Errorf("phase %s", m.Status.Phase)
	}
}

func TestMemcachedIsDeletedWithOrWithoutFinalBackup(t *testing.T) {
	edit := func(change func(*v1alpha1.Memcached)) func(*fakeCluster) {
		return func(cluster *fakeCluster) { cluster.change("cache", change) }
	}
	running := func(cluster *fakeCluster) { cluster.step("cache"); cluster.advanceBackups(v1alpha1.TransferRunning) }
	for name, c := range map[string]struct {
		spec string
		// before and after are called before and after the Memcached is deleted.
		before, after func(*fakeCluster)
		backups       int
		event         string
	}{
		"the backup completes": {withFinalBackup, nil, func(cluster *fakeCluster) { running(cluster); cluster.advanceBackups(v1alpha1.TransferComplete) }, 1,
			"Normal FinalBackup MemcachedBackup cache-final-"},
		"the backup fails": {withFinalBackup, nil, func(cluster *fakeCluster) { running(cluster); cluster.advanceBackups(v1alpha1.TransferFailed) }, 1,
			"Warning FinalBackup deleting without a final backup: MemcachedBackup cache-final-"},
		"the backup takes too long": {withFinalBackup, nil, func(cluster *fakeCluster) { running(cluster); cluster.clock.Step(6 * time.Minute) }, 1,
			"Warning FinalBackup deleting without a final backup: MemcachedBackup cache-final-"},
		"the Memcached is paused": {withFinalBackup, edit(func(m *v1alpha1.Memcached) { m.Spec.Paused = true }), func(cluster *fakeCluster) { running(cluster); cluster.advanceBackups(v1alpha1.TransferComplete) }, 1,
			"Normal FinalBackup MemcachedBackup cache-final-"},
		"the spec is rejected": {withFinalBackup, edit(func(m *v1alpha1.Memcached) { m.Spec.Version = "1.5.0" }), func(cluster *fakeCluster) { running(cluster); cluster.advanceBackups(v1alpha1.TransferComplete) }, 1,
			"Normal FinalBackup MemcachedBackup cache-final-"},
		"the policy becomes Delete during the backup": {withFinalBackup, nil, func(cluster *fakeCluster) {
			running(cluster)
			cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.DeletionPolicy = v1alpha1.DeletionDelete })
		}, 1, ""},
		"the policy became Delete before": {withFinalBackup, edit(func(m *v1alpha1.Memcached) { m.Spec.DeletionPolicy = v1alpha1.DeletionDelete }), nil, 0, ""},
		"the policy is Delete":            {"size: 1", nil, nil, 0, ""},
		"no shards": {withFinalBackup, edit(func(m *v1alpha1.Memcached) { *m.Spec.Size = 0 }), nil, 0,
			"Normal FinalBackup no shard exists to back up"},
		"the shards aren't filled yet": {withBootstrap, edit(func(m *v1alpha1.Memcached) {
			m.Spec.DeletionPolicy, m.Spec.FinalBackup = v1alpha1.DeletionBackup, &v1alpha1.FinalBackup{
				Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}}
		}), nil, 0, "Warning FinalBackup deleting without a final backup: its shards had not been filled yet"},
		"a foreign backup has its name": {withFinalBackup, func(cluster *fakeCluster) {
			cluster.must(cluster.admin.Create(cluster.ctx, &v1alpha1.MemcachedBackup{
				ObjectMeta: metav1.ObjectMeta{Namespace: cluster.namespace, Name: observation.FinalBackupName(cluster.get("cache"))},
				Spec: v1alpha1.MemcachedBackupSpec{MemcachedRef: v1alpha1.MemcachedReference{Name: "other"},
					Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}}}))
		}, nil, 1, "Warning FinalBackup deleting without a final backup: MemcachedBackup cache-final-"},
		"foreground deletion has deleted the pods": {withFinalBackup, nil, func(cluster *fakeCluster) {
			running(cluster)
			for _, pod := range cluster.list() {
				cluster.removePod(pod)
			}
			cluster.advanceBackups(v1alpha1.TransferFailed)
		}, 1, "Warning FinalBackup deleting without a final backup: MemcachedBackup cache-final-"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newReadyCluster(t, "cache", c.spec)
			if c.before != nil {
				c.before(cluster)
				cluster.converge()
			}
			cluster.recorded()
			m := cluster.get("cache")
			if has := len(m.Finalizers) > 0; has != (m.Spec.DeletionPolicy == v1alpha1.DeletionBackup) {
				t.Fatalf("policy %s, finalizers %v", m.Spec.DeletionPolicy, m.Finalizers)
			}
			cluster.must(cluster.admin.Delete(cluster.ctx, m))
			if c.after != nil {
				c.after(cluster)
			}
			for i := 0; i < 3 && cluster.exists("cache", m); i++ {
				cluster.step("cache")
			}
			if cluster.exists("cache", m) {
				t.Fatalf("not deleted: %+v", m.Status.Conditions)
			}
			if n := len(cluster.listBackups()); n != c.backups {
				t.Errorf("%d backups, want %d", n, c.backups)
			}
			events := slices.DeleteFunc(cluster.recorded(), func(e string) bool { return !strings.Contains(e, v1alpha1.EventFinalBackup) })
			if (c.event == "") != (len(events) == 0) || len(events) > 1 || len(events) == 1 && !strings.HasPrefix(events[0], c.event) {
				t.Errorf("events %q, want %q", events, c.event)
			}
		})
	}
}

// A finalizer that another controller has added since must not be lost.
func TestFinalizerOfAnotherControllerIsKept(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "{size: 0, deletionPolicy: Backup, finalBackup: {store: {persistentVolumeClaim: {claimName: store}}}}")
	obs := env.observe("cache")
	env.change("cache", func(m *v1alpha1.Memcached) { m.Finalizers = []string{"example.com/theirs"} })
	if res := env.apply(obs.Memcached, plan.Make(obs, env.reconciler.Options).Actions); !res.Conflict {
		t.Errorf("no conflict: %+v", res)
	}
	m := env.converge("cache")
	if want := []string{"example.com/theirs", v1alpha1.FinalizerFinalBackup}; !slices.Equal(m.Finalizers, want) {
		t.Errorf("finalizers %v, want %v", m.Finalizers, want)
	}
	env.must(env.admin.Delete(env.ctx, m))
	if m = env.step("cache"); m == nil || !slices.Equal(m.Finalizers, []string{"example.com/theirs"}) {
		t.Errorf("after the deletion: %+v", m)
	}
	if _, err := env.tryCreate("cache", "{}"); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the Memcached is deleted: %v", err)
	}
}
