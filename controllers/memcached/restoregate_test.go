package memcached

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// startRestore creates a restore that a user created, and that is Running.
func (cluster *fakeCluster) startRestore(name string) {
	cluster.Helper()
	restore := &v1alpha1.MemcachedRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.namespace, Name: name},
		Spec: v1alpha1.MemcachedRestoreSpec{MemcachedRef: v1alpha1.MemcachedReference{Name: cluster.memcached},
			BackupRef: &v1alpha1.BackupReference{Name: "nightly"}},
	}
	cluster.must(cluster.admin.Create(cluster.ctx, restore))
	now := metav1.NewTime(cluster.clock.Now())
	restore.Status.Phase, restore.Status.StartTime = v1alpha1.TransferRunning, &now
	cluster.must(cluster.admin.Status().Update(cluster.ctx, restore))
}

func (cluster *fakeCluster) changeMemory() {
	cluster.change(cluster.memcached, func(m *v1alpha1.Memcached) { m.Spec.Memory = ptr.To(resource.MustParse("80Mi")) })
}

func TestReplacementWaitsForRestore(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "size: 2")
	cluster.startRestore("fill")
	cluster.changeMemory()
	m := cluster.converge()
	if u := m.Status.Update; u == nil || u.Gate != v1alpha1.GateRestoreRunning || u.Method != v1alpha1.UpdateReplace || len(cluster.list()) != 2 {
		t.Fatalf("the update is %+v with %d pods", u, len(cluster.list()))
	}
	cluster.finishRestore = completeRestore
	if m = cluster.converge(); m.Status.Update != nil || m.Status.Shards[0].Start != v1alpha1.StartCold || !m.Status.Shards[1].Current {
		t.Errorf("the status is %+v", m.Status)
	}
}

// A Job that a queue delays, or one on a lost node, doesn't block updates forever.
func TestReplacementDoesNotWaitForRestoreLongPastItsDeadline(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "size: 2")
	cluster.startRestore("fill")
	cluster.changeMemory()
	cluster.converge()
	cluster.clock.Step(2*v1alpha1.DefaultTransferDeadlineSeconds*1e9 + 11*60*1e9)
	if m := cluster.converge(); m.Status.Update != nil {
		t.Errorf("the update is %+v", m.Status.Update)
	}
}

func TestWarmRestartDoesNotWaitForRestore(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "size: 2")
	cluster.startRestore("fill")
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Threads = ptr.To[int32](2) })
	if m := cluster.converge(); m.Status.Update != nil {
		t.Errorf("the update is %+v", m.Status.Update)
	}
}

// withoutRestores is a cache that lags behind.
type withoutRestores struct{ client.Client }

func (c withoutRestores) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.MemcachedRestoreList); ok {
		return nil
	}
	return c.Client.List(ctx, list, options...)
}

func TestRestoreThatTheCacheLacksIsNotMissed(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "size: 2")
	cluster.startRestore("fill")
	cluster.reconciler.Client = withoutRestores{cluster.reconciler.Client}
	cluster.changeMemory()
	for range 20 {
		cluster.reconcile("cache")
		cluster.tick()
		cluster.clock.Step(time.Second)
	}
	if m := cluster.get("cache"); len(cluster.list()) != 2 || m.Status.Update == nil {
		t.Errorf("%d pods, the update is %+v", len(cluster.list()), m.Status.Update)
	}
}
