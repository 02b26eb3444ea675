package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestPreflightPodsAreDeletedWhenTheRolloutIsDone(t *testing.T) {
	for name, c := range map[string]struct {
		phase     corev1.PodPhase
		age       time.Duration
		done      bool
		deletes   int
		requeueIn time.Duration
	}{
		"the rollout continues":       {corev1.PodSucceeded, time.Hour, false, 0, 0},
		"the rollout is done":         {corev1.PodSucceeded, time.Minute, true, 1, 0},
		"a failed check will repeat":  {corev1.PodFailed, time.Minute, false, 0, 4 * time.Minute},
		"a failed check is repeated":  {corev1.PodFailed, 5 * time.Minute, false, 1, 0},
		"a failed check is forgotten": {corev1.PodFailed, time.Minute, true, 1, 0},
	} {
		obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"ready", "none"})
		obs.Now = time.Unix(10_000, 0)
		obs.Image, obs.ImageError = resources.ResolveImage(obs.Memcached.Spec.Image, obs.Memcached.Spec.Version, plantest.Options.DefaultImage)
		obs.ReadShards()
		obs.PreflightPods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(obs.Now.Add(-c.age)),
			Annotations: map[string]string{annotations.Revision: obs.UpdateRevision.Hash()}}, Status: corev1.PodStatus{Phase: c.phase}}}
		if a := plan.PlanPreflightCleanup(obs, c.done); len(a.Delete) != c.deletes || a.RequeueAfter != c.requeueIn {
			t.Errorf("%s: %d deletes, requeue after %s; want %d, %s", name, len(a.Delete), a.RequeueAfter, c.deletes, c.requeueIn)
		}
	}
}
