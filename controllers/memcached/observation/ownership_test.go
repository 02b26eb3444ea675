package observation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

func TestOwnershipOf(t *testing.T) {
	controlledBy := func(group, kind, name string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
	}
	ourGroup := v1beta1.GroupVersion.String()
	for _, c := range []struct {
		name   string
		labels map[string]string
		owners []metav1.OwnerReference
		want   observation.Ownership
	}{
		{"controlled by this Memcached", nil, controlledBy(ourGroup, "Memcached", "cache", "uid"), observation.Ours},
		{"controlled by another Memcached of this name", nil, controlledBy(ourGroup, "Memcached", "cache", "before"), observation.Predecessors},
		{"controlled by a Memcached of another name", nil, controlledBy(ourGroup, "Memcached", "sessions", "other"), observation.Foreign},
		{"controlled by a Memcached of another API group", nil, controlledBy("example.com/v1", "Memcached", "cache", "other"), observation.Foreign},
		{"controlled by another kind, with our labels", resources.Labels("cache"), controlledBy("apps/v1", "Deployment", "cache", "other"), observation.Foreign},
		{"no controller, created for this name", resources.Labels("cache"), nil, observation.Orphaned},
		{"no controller, created for another name", resources.Labels("sessions"), nil, observation.Foreign},
		{"no controller, created by another program", map[string]string{v1beta1.LabelInstance: "cache", v1beta1.LabelManagedBy: "Helm"}, nil, observation.Foreign},
		{"no controller, no labels", nil, nil, observation.Foreign},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", UID: "uid"}}
			o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cache-0", Labels: c.labels, OwnerReferences: c.owners}}
			if got := observation.OwnershipOf(m, o); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
