package plan_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// The kubelet can miss a change of an annotation until the pod changes again.
func TestReadinessIsReleasedAgainForPodsThatDontBecomeReady(t *testing.T) {
	now := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	deadline := metav1.NewTime(now.Add(time.Minute))
	keep := "keep"
	for name, c := range map[string]struct {
		value string
		ready bool
		phase v1alpha1.TransferPhase
		late  time.Duration
		want  string
	}{
		"while the restore is running": {at(time.Minute), false, v1alpha1.TransferRunning, 0, keep},
		"when the restore is done":     {at(time.Minute), false, v1alpha1.TransferComplete, 0, at(0)},
		"two seconds later":            {at(-2 * time.Second), false, v1alpha1.TransferComplete, 0, keep},
		"after five seconds":           {at(-5 * time.Second), false, v1alpha1.TransferComplete, 0, at(0)},
		"when the pod is ready":        {at(-time.Second), true, v1alpha1.TransferFailed, 0, ""},
		"at the deadline":              {at(time.Minute), false, v1alpha1.TransferFailed, time.Minute, ""},
		"a value that isn't a time":    {"later", false, v1alpha1.TransferComplete, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"starting", "none"})
			obs.Now = now.Add(c.late)
			obs.Memcached.Spec.Bootstrap = &v1alpha1.Bootstrap{BackupRef: &v1alpha1.BackupReference{Name: "nightly"}}
			pod := obs.Pods["cache-0"][0]
			pod.Annotations = map[string]string{annotations.HoldUntil: c.value}
			if c.ready {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			obs.Memcached.Status.Bootstrap = &v1alpha1.BootstrapStatus{RestoreName: "cache-bootstrap", Phase: c.phase, Deadline: deadline}
			p := plantest.Plan(obs)
			got := keep
			for _, patch := range p.Actions.Patch {
				value := patch.Body["metadata"].(map[string]any)["annotations"].(map[string]any)[annotations.HoldUntil]
				got, _ = value.(string)
			}
			if got != c.want {
				t.Errorf("annotation %q, want %q", got, c.want)
			}
			if got == keep && p.Actions.RequeueAfter == 0 {
				t.Error("no requeue")
			}
		})
	}
}

func TestBootstrapIgnoresTheResultOfForeignRestore(t *testing.T) {
	for _, phase := range []v1alpha1.TransferPhase{"", v1alpha1.TransferRunning, v1alpha1.TransferComplete, v1alpha1.TransferFailed} {
		for owner, want := range map[plan.Ownership]v1alpha1.TransferPhase{plan.Orphaned: v1alpha1.TransferFailed, plan.Foreign: v1alpha1.TransferFailed, plan.Predecessors: v1alpha1.TransferRunning} {
			obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"none", "none"})
			m := obs.Memcached
			m.Spec.Bootstrap = &v1alpha1.Bootstrap{}
			m.Status.Bootstrap = &v1alpha1.BootstrapStatus{RestoreName: "cache-bootstrap", Phase: v1alpha1.TransferRunning, Deadline: metav1.NewTime(obs.Now.Add(time.Minute))}
			restore := &v1alpha1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Name: "cache-bootstrap"}}
			restore.Status.Phase, restore.Status.Restored = phase, 1000
			obs.Restores = map[string]plan.Object{"cache-bootstrap": {APIObject: restore, Owner: owner}}
			p := plantest.Plan(obs)
			if b := p.Bootstrap.Status; b.Phase != want || strings.Contains(b.Message, "1,000") || len(p.Actions.Create) > 0 {
				t.Errorf("phase %q, owner %d: bootstrap %+v, %d objects to create", phase, owner, b, len(p.Actions.Create))
			}
		}
	}
}
