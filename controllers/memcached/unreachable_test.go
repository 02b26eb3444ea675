package memcached

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// A NetworkPolicy may deny the operator's queries while the pods stay ready.
func TestUpdateWithUnreachableAgentIsDegradedUntilTheAgentAnswers(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.MemcachedSpec){
		"before the agent knows of the stop":        func(s *v1alpha1.MemcachedSpec) { s.Version = "1.6.45" },
		"after the change was applied to the shard": func(s *v1alpha1.MemcachedSpec) { s.Threads = ptr.To[int32](2) },
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newReadyCluster(t, "cache", "{size: 2, version: 1.6.38}")
			cluster.change("cache", func(m *v1alpha1.Memcached) { change(&m.Spec) })
			cluster.silent = true
			var result ctrl.Result
			degradedAfter := -1
			for i := range 45 {
				var err error
				result, err = cluster.reconciler.Reconcile(cluster.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: cluster.namespace, Name: "cache"}})
				cluster.must(err)
				cluster.tick()
				cluster.clock.Step(10 * time.Second)
				if phase := cluster.get("cache").Status.Phase; phase == v1alpha1.PhaseBlocked && degradedAfter < 0 {
					degradedAfter = i * 10
				}
			}
			if degradedAfter < 300 || degradedAfter > 340 {
				t.Errorf("Degraded after %d seconds, want after five minutes", degradedAfter)
			}
			if result.RequeueAfter != 30*time.Second {
				t.Errorf("requeued after %s, want 30s", result.RequeueAfter)
			}
			m := cluster.get("cache")
			cluster.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonAgentUnreachable, "shard cache-0", "TCP port 11212")
			cluster.silent = false
			m = cluster.converge()
			cluster.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
			if m.Status.UpdatedSize != 2 {
				t.Errorf("%d shards are updated", m.Status.UpdatedSize)
			}
		})
	}
}
