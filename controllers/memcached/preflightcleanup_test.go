package memcached

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

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
		obs := newObservation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"ready", "none"})
		obs.now = time.Unix(10_000, 0)
		obs.image, obs.imageError = resources.ResolveImage(obs.memcached.Spec.Image, obs.memcached.Spec.Version, testOptions.DefaultImage)
		obs.readShards()
		obs.preflightPods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(obs.now.Add(-c.age)),
			Annotations: map[string]string{annotations.Revision: obs.updateRevision.Hash()}}, Status: corev1.PodStatus{Phase: c.phase}}}
		if a := planPreflightCleanup(obs, c.done); len(a.Delete) != c.deletes || a.RequeueAfter != c.requeueIn {
			t.Errorf("%s: %d deletes, requeue after %s; want %d, %s", name, len(a.Delete), a.RequeueAfter, c.deletes, c.requeueIn)
		}
	}
}
