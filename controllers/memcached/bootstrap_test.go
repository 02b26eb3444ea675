package memcached

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

const withBootstrap = "{size: 2, bootstrap: {backupRef: {name: nightly}, deadlineSeconds: 300, maxAgeSeconds: 86400, maxTTLSeconds: 900}}"

func TestMemcachedIsReadyWhenTheRestoreHasFinished(t *testing.T) {
	for name, c := range map[string]struct {
		finishRestore func(*v1alpha1.MemcachedRestore)
		bootstrap     string
	}{
		"the restore completes": {completeRestore, "bootstrap: Complete, the shards got 2,000 restored items"},
		"the restore fails":     {failRestore, "bootstrap: Failed, the shards got no restored items: MemcachedRestore cache-bootstrap failed: the snapshot does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t, "cache", withBootstrap)
			cluster.waitForBootstrap("restored 43% of 2,000 items")
			cluster.finishRestore = c.finishRestore
			summary := cluster.summary(cluster.converge())
			for _, line := range []string{c.bootstrap, "pods created: 2", "Ready True AllShardsReady", "Progressing False UpToDate", "Degraded False AsExpected"} {
				if !strings.Contains(summary, line) {
					t.Errorf("missing %q in:\n%s", line, summary)
				}
			}
		})
	}
}

// waitForBootstrap converges while a restore is running: all shards serve, and the Memcached isn't ready.
func (cluster *fakeCluster) waitForBootstrap(message string) *v1alpha1.Memcached {
	cluster.Helper()
	m := cluster.converge()
	if !m.Status.Bootstrap.IsRunning() || m.Status.ReadySize != 2 {
		cluster.Fatalf("bootstrap %+v, %s shards serve", m.Status.Bootstrap, m.Status.Ready)
	}
	cluster.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	cluster.wantCondition(m, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonBootstrapping, message)
	return m
}

func TestPausedMemcachedIsNotFilledUntilItContinues(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 2, paused: true, bootstrap: {backupRef: {name: nightly}}}")
	if m := cluster.converge(); m.Status.Bootstrap != nil {
		t.Fatalf("bootstrap %+v", m.Status.Bootstrap)
	}
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = false })
	cluster.waitForBootstrap("restored 43%")

	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = true })
	cluster.waitForBootstrap("restored 43%")
	cluster.finishRestore = completeRestore
	if m := cluster.converge(); m.Status.Bootstrap.Phase != v1alpha1.TransferComplete {
		t.Errorf("bootstrap %+v", m.Status.Bootstrap)
	}
}

func TestBootstrapDoesNotApplyToExistingShards(t *testing.T) {
	for name, prepare := range map[string]func(cluster *fakeCluster){
		"ready shards": func(*fakeCluster) {},
		"lost shards": func(cluster *fakeCluster) {
			cluster.must(cluster.admin.DeleteAllOf(cluster.ctx, &appsv1.ReplicaSet{}, client.InNamespace(cluster.testEnv.namespace)))
		},
		"shards that were filled before": func(cluster *fakeCluster) {
			m := cluster.get("cache")
			m.Status.Bootstrap = &v1alpha1.BootstrapStatus{RestoreName: "cache-bootstrap", Phase: v1alpha1.TransferComplete}
			m.Status.Shards = nil
			cluster.must(cluster.admin.Status().Update(cluster.ctx, m))
			cluster.must(cluster.admin.DeleteAllOf(cluster.ctx, &appsv1.ReplicaSet{}, client.InNamespace(cluster.testEnv.namespace)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newReadyCluster(t, "cache", "size: 2")
			cluster.change("cache", func(m *v1alpha1.Memcached) {
				m.Spec.Bootstrap = &v1alpha1.Bootstrap{BackupRef: &v1alpha1.BackupReference{Name: "nightly"}}
			})
			prepare(cluster)
			if m := cluster.converge(); m.Status.Bootstrap.IsRunning() || len(cluster.listRestores()) > 0 || m.Status.ReadySize != 2 {
				t.Errorf("bootstrap %+v, %d shards are ready", m.Status.Bootstrap, m.Status.ReadySize)
			}
		})
	}
}

func TestBootstrapDoesNotApplyToShardsThatAreAddedLater(t *testing.T) {
	cluster := newCluster(t, "cache", withBootstrap)
	cluster.finishRestore = completeRestore
	cluster.converge()
	cluster.change("cache", func(m *v1alpha1.Memcached) { *m.Spec.Size = 3 })
	if m := cluster.converge(); m.Status.ReadySize != 3 || len(cluster.listRestores()) != 1 {
		t.Errorf("%s ready, restores: %+v", m.Status.Ready, cluster.listRestores())
	}
}
