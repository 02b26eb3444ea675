package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

func TestOwnershipOf(t *testing.T) {
	controlledBy := func(group, kind, name string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
	}
	ourGroup := v1alpha1.GroupVersion.String()
	for _, c := range []struct {
		name   string
		labels map[string]string
		owners []metav1.OwnerReference
		want   plan.Ownership
	}{
		{"controlled by this Memcached", nil, controlledBy(ourGroup, "Memcached", "cache", "uid"), plan.Ours},
		{"controlled by another Memcached of this name", nil, controlledBy(ourGroup, "Memcached", "cache", "before"), plan.Predecessors},
		{"controlled by a Memcached of another name", nil, controlledBy(ourGroup, "Memcached", "sessions", "other"), plan.Foreign},
		{"controlled by a Memcached of another API group", nil, controlledBy("example.com/v1", "Memcached", "cache", "other"), plan.Foreign},
		{"controlled by another kind, with our labels", resources.Labels("cache"), controlledBy("apps/v1", "Deployment", "cache", "other"), plan.Foreign},
		{"no controller, created for this name", resources.Labels("cache"), nil, plan.Orphaned},
		{"no controller, created for another name", resources.Labels("sessions"), nil, plan.Foreign},
		{"no controller, created by another program", map[string]string{v1alpha1.LabelInstance: "cache", v1alpha1.LabelManagedBy: "Helm"}, nil, plan.Foreign},
		{"no controller, no labels", nil, nil, plan.Foreign},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", UID: "uid"}}
			o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cache-0", Labels: c.labels, OwnerReferences: c.owners}}
			if got := plan.OwnershipOf(m, o); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// The cache doesn't contain foreign objects, so no watch reports that the name is free.
func TestConflictingNameIsCheckedAgain(t *testing.T) {
	for state, want := range map[string]time.Duration{"ours": 0, "foreign": plan.ConflictRecheck} {
		obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{state, "absent"}, [2]string{"none", "none"})
		if p := plantest.Plan(obs); p.Actions.RequeueAfter != want {
			t.Errorf("Service %s: requeue after %s, want %s", state, p.Actions.RequeueAfter, want)
		}
	}
}
