package memcached

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

const toBeBackedUp = "{size: 2, deletionPolicy: Backup, backup: {store: {persistentVolumeClaim: {claimName: store}}, rateLimit: {itemsPerSecond: 7}, deadline: 5m}}"

// ends takes a step with the backups that there are: to Running, and then to a
// phase; RunRunning leaves them there.
func (w *world) ends(phase v1alpha1.RunPhase) {
	w.Helper()
	for _, backup := range w.listBackups() {
		switch s := &backup.Status; {
		case s.Phase == "":
			s.Phase, s.Progress = v1alpha1.RunRunning, &v1alpha1.RunProgress{Items: 860, TotalItems: 2000, Percent: 43}
		case s.Phase == v1alpha1.RunRunning && phase == v1alpha1.RunComplete:
			s.Phase, s.Snapshot = phase, &v1alpha1.SnapshotStatus{Path: "p", TakenAt: metav1.Now(), Items: 2000}
		case s.Phase == v1alpha1.RunRunning && phase == v1alpha1.RunFailed:
			s.Phase, s.Message = phase, "the store is full"
		default:
			continue
		}
		w.must(admin.Status().Update(w.ctx, &backup))
	}
}

func (w *world) listBackups() []v1alpha1.MemcachedBackup {
	w.Helper()
	var backups v1alpha1.MemcachedBackupList
	w.must(admin.List(w.ctx, &backups, client.InNamespace(w.namespace)))
	return backups.Items
}

// step reconciles a Memcached and returns it; nil when it has gone.
func (w *world) step(name string) *v1alpha1.Memcached {
	w.Helper()
	key := types.NamespacedName{Namespace: w.namespace, Name: name}
	if _, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: key}); err != nil {
		w.Logf("a reconcile came to: %v", err)
	}
	m := &v1alpha1.Memcached{}
	if err := admin.Get(w.ctx, key, m); err != nil {
		w.must(client.IgnoreNotFound(err))
		return nil
	}
	return m
}

func TestTheLastBackupIsTakenOnceWhereverTheOperatorIsKilled(t *testing.T) {
	run := func(t *testing.T, lives int64) (end string, writes int64, killed bool) {
		k := newSettledKubelet(t, "cache", toBeBackedUp)
		pods := k.made
		k.must(admin.Delete(k.ctx, k.get("cache")))
		before := k.writes.Load()
		if lives > 0 {
			k.lives.Store(lives)
		}
		for range 20 {
			m := k.step("cache")
			if k.lives.Load() <= 0 {
				k.lives.Store(1 << 60)
				killed = true
			}
			if m == nil {
				break
			}
			k.ends(v1alpha1.RunComplete)
			k.tick()
			k.clock.Step(time.Second)
		}
		for _, b := range k.listBackups() {
			end += fmt.Sprintf("%s of %s: %s, owned by %d; ", strings.TrimRight(b.Name, "0123456789abcdef"), b.Spec.Memcached.Name, b.Status.Phase, len(b.OwnerReferences))
		}
		end += fmt.Sprintf("gone %t, pods made %d", !k.exists("cache", &v1alpha1.Memcached{}), k.made-pods)
		return end, k.writes.Load() - before, killed
	}
	want, writes, _ := run(t, 0)
	if line := "cache-final- of cache: Complete, owned by 0; gone true, pods made 0"; want != line {
		t.Fatalf("it ends as %q, want %q", want, line)
	}
	killedAfterEach(t, want, writes, run)
}

func TestAMemcachedServesWhileItsLastBackupIsTaken(t *testing.T) {
	k := newSettledKubelet(t, "cache", toBeBackedUp)
	m := k.get("cache")
	k.must(admin.Delete(k.ctx, m))
	k.step("cache")
	backups := k.listBackups()
	if len(backups) != 1 || backups[0].Name != "cache-final-"+string(m.UID[:8]) {
		t.Fatalf("backups: %+v", backups)
	}
	s := backups[0].Spec
	if s.Memcached.Name != "cache" || s.Store.PersistentVolumeClaim.ClaimName != "store" || *s.RateLimit.ItemsPerSecond != 7 ||
		s.Deadline.Duration != 5*time.Minute || s.DeletionPolicy != v1alpha1.SnapshotRetain {
		t.Errorf("it asks for %+v", s)
	}
	k.ends(v1alpha1.RunRunning)
	m = k.step("cache")
	k.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBackingUp, "has copied 43 % of 2,000 items; the Memcached goes when it is done, at ")
	k.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	if m.Status.Phase != v1alpha1.PhaseDeleting {
		t.Errorf("its phase is %s", m.Status.Phase)
	}
}

// Each way in which a Memcached that is deleted goes, and what is said of it.
func TestAMemcachedGoesInTheEndWithOrWithoutABackup(t *testing.T) {
	edit := func(change func(*v1alpha1.Memcached)) func(*kubelet) {
		return func(k *kubelet) { k.change("cache", change) }
	}
	running := func(k *kubelet) { k.step("cache"); k.ends(v1alpha1.RunRunning) }
	for name, c := range map[string]struct {
		spec string
		// before and after it is deleted.
		before, after func(*kubelet)
		backups       int
		event         string
	}{
		"its backup is complete": {toBeBackedUp, nil, func(k *kubelet) { running(k); k.ends(v1alpha1.RunComplete) }, 1,
			"Normal FinalBackup MemcachedBackup cache-final-"},
		"its backup failed": {toBeBackedUp, nil, func(k *kubelet) { running(k); k.ends(v1alpha1.RunFailed) }, 1,
			"Warning FinalBackup the Memcached goes without a backup: MemcachedBackup cache-final-"},
		"its backup takes too long": {toBeBackedUp, nil, func(k *kubelet) { running(k); k.clock.Step(6 * time.Minute) }, 1,
			"Warning FinalBackup the Memcached goes without a backup: MemcachedBackup cache-final-"},
		"it is paused": {toBeBackedUp, edit(func(m *v1alpha1.Memcached) { m.Spec.Paused = true }), func(k *kubelet) { running(k); k.ends(v1alpha1.RunComplete) }, 1,
			"Normal FinalBackup MemcachedBackup cache-final-"},
		"its image is refused": {toBeBackedUp, edit(func(m *v1alpha1.Memcached) { m.Spec.Version = "1.5.0" }), func(k *kubelet) { running(k); k.ends(v1alpha1.RunComplete) }, 1,
			"Normal FinalBackup MemcachedBackup cache-final-"},
		"somebody does not want to wait": {toBeBackedUp, nil, func(k *kubelet) {
			running(k)
			k.change("cache", func(m *v1alpha1.Memcached) { m.Spec.DeletionPolicy = v1alpha1.DeletionDelete })
		}, 1, ""},
		"its policy became Delete before": {toBeBackedUp, edit(func(m *v1alpha1.Memcached) { m.Spec.DeletionPolicy = v1alpha1.DeletionDelete }), nil, 0, ""},
		"its policy was Delete":           {"size: 1", nil, nil, 0, ""},
		"it says nothing of a store":      {"{size: 1, deletionPolicy: Backup}", nil, nil, 0, "Warning FinalBackup the Memcached goes without a backup: spec.backup does not say where to"},
		"it has no shard": {toBeBackedUp, edit(func(m *v1alpha1.Memcached) { *m.Spec.Size = 0 }), nil, 0,
			"Normal FinalBackup there is no shard that could be backed up"},
		"it is not filled yet": {toBeFilled, edit(func(m *v1alpha1.Memcached) {
			m.Spec.DeletionPolicy, m.Spec.Backup = v1alpha1.DeletionBackup, &v1alpha1.FinalBackup{
				Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}}
		}), nil, 0, "Warning FinalBackup the Memcached goes without a backup: its shards were not filled yet"},
		"somebody has a backup of that name": {toBeBackedUp, func(k *kubelet) {
			k.must(admin.Create(k.ctx, &v1alpha1.MemcachedBackup{
				ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: finalName(k.get("cache"))},
				Spec: v1alpha1.MemcachedBackupSpec{Memcached: v1alpha1.MemcachedReference{Name: "other"},
					Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}}}))
		}, nil, 1, "Warning FinalBackup the Memcached goes without a backup: MemcachedBackup cache-final-"},
		"its namespace goes too": {toBeBackedUp, func(k *kubelet) {
			k.must(admin.Delete(k.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.namespace}}))
		}, nil, 0, "Warning FinalBackup the Memcached goes without a backup: its namespace goes too"},
		"it is deleted in the foreground, and its pods have gone": {toBeBackedUp, nil, func(k *kubelet) {
			running(k)
			for _, pod := range k.list() {
				k.endPod(pod)
			}
			k.ends(v1alpha1.RunFailed)
		}, 1, "Warning FinalBackup the Memcached goes without a backup: MemcachedBackup cache-final-"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newSettledKubelet(t, "cache", c.spec)
			if c.before != nil {
				c.before(k)
				k.settle()
			}
			k.recorded()
			m := k.get("cache")
			if held := len(m.Finalizers) > 0; held != (m.Spec.DeletionPolicy == v1alpha1.DeletionBackup) {
				t.Fatalf("the policy is %s, and the finalizers are %v", m.Spec.DeletionPolicy, m.Finalizers)
			}
			k.must(admin.Delete(k.ctx, m))
			if c.after != nil {
				c.after(k)
			}
			for i := 0; i < 3 && k.exists("cache", m); i++ {
				k.step("cache")
			}
			if k.exists("cache", m) {
				t.Fatalf("it stays: %+v", m.Status.Conditions)
			}
			if n := len(k.listBackups()); n != c.backups {
				t.Errorf("%d backups, want %d", n, c.backups)
			}
			told := slices.DeleteFunc(k.recorded(), func(e string) bool { return !strings.Contains(e, v1alpha1.EventFinalBackup) })
			if (c.event == "") != (len(told) == 0) || len(told) > 1 || len(told) == 1 && !strings.HasPrefix(told[0], c.event) {
				t.Errorf("told was %q, want %q", told, c.event)
			}
		})
	}
}

func TestAPolicyThatCannotBeKeptIsToldAtOnce(t *testing.T) {
	k := newSettledKubelet(t, "cache", "{size: 1, deletionPolicy: Backup}")
	k.wantCondition(k.get("cache"), v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonDeletionPolicyInvalid, "needs spec.backup")
	k.change("cache", func(m *v1alpha1.Memcached) {
		m.Spec.Backup = &v1alpha1.FinalBackup{Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}}
	})
	k.wantCondition(k.settle(), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
}

// A finalizer that another controller adds meanwhile must not be lost.
func TestAFinalizerIsNotWrittenOverAnothers(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "{size: 0, deletionPolicy: Backup}")
	seen, err := w.reconciler.observe(w.ctx, w.get("cache"))
	w.must(err)
	w.change("cache", func(m *v1alpha1.Memcached) { m.Finalizers = []string{"example.com/theirs"} })
	if a := w.reconciler.apply(w.ctx, makePlan(seen, w.reconciler.Options)); !a.outrun || len(a.failures) > 0 {
		t.Errorf("it came to %+v", a)
	}
	m := w.settle("cache")
	if want := []string{"example.com/theirs", v1alpha1.FinalizerBackup}; !slices.Equal(m.Finalizers, want) {
		t.Errorf("finalizers %v, want %v", m.Finalizers, want)
	}
	w.must(admin.Delete(w.ctx, m))
	if m = w.step("cache"); m == nil || !slices.Equal(m.Finalizers, []string{"example.com/theirs"}) {
		t.Errorf("of %+v", m)
	}
	if _, err := w.tryCreate("cache", "{}"); !apierrors.IsAlreadyExists(err) {
		t.Errorf("it has gone: %v", err)
	}
}
