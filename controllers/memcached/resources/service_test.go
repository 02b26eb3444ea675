package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestServiceIsRecreatedForAnotherLoadBalancerClassOnce(t *testing.T) {
	for name, c := range map[string]struct {
		requested, live string // of the Service; a policy may have replaced the class
		applies         bool   // the operator owns the class
		want            string
		recreated       bool
	}{
		"it has the class":                                    {requested: "a", live: "a", applies: true, want: "a"},
		"the spec has another":                                {requested: "a", live: "a", applies: true, want: "b", recreated: true},
		"the spec has none any more":                          {requested: "a", live: "a", applies: true, recreated: true},
		"the spec has one now":                                {want: "a", recreated: true},
		"a policy replaces it":                                {requested: "a", live: "b", applies: true, want: "a"},
		"the spec follows the policy":                         {requested: "a", live: "b", applies: true, want: "b"},
		"a policy replaced it, and the spec has another":      {requested: "a", live: "b", applies: true, want: "c", recreated: true},
		"a policy replaced it, and the spec has none":         {requested: "a", live: "b", applies: true, recreated: true},
		"a policy sets it where the spec has none":            {live: "b"},
		"a policy set it where the spec had none":             {live: "b", want: "a", recreated: true},
		"an older operator created it":                        {live: "a", applies: true, want: "a"},
		"an older operator created it with another":           {live: "a", applies: true, want: "b", recreated: true},
		"an older operator created it, and the spec has none": {live: "a", applies: true, recreated: true},
	} {
		m := &v1beta1.Memcached{}
		m.Name, m.Spec.Size, m.Spec.Access.External = "cache", ptr.To[int32](1), v1beta1.ExternalSpec{Mode: v1beta1.ExternalLoadBalancer, LoadBalancerClass: c.want}
		b, have := NewBuilder(m, options), &corev1.Service{}
		if c.live != "" {
			have.Spec.LoadBalancerClass = &c.live
		}
		if c.requested != "" {
			have.Annotations = map[string]string{annotations.LoadBalancerClass: c.requested}
		}
		if c.applies {
			have.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: v1beta1.ManagedByValue, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1",
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:loadBalancerClass":{}}}`)}}
		}
		for _, want := range b.Desired([]Shard{{}}) {
			if want.Key != ExternalKey("cache-0") {
				continue
			}
			if got := b.Build(want).TransitionFrom(have); got.Recreate != c.recreated {
				t.Errorf("%s: recreated: %t", name, got.Recreate)
			}
		}
	}
}
