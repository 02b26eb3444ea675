package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Transition is what it takes to change an existing object, besides a write of what is desired.
type Transition struct {
	// Recreate deletes it first.
	Recreate bool
	// Changes is whether it has to be written although it has all fields that the operator applies.
	Changes bool
}

// TransitionFrom returns what it takes to change an existing object. Kubernetes doesn't change the class of
// the load balancer of a Service, and keeps the ports of the nodes and the second address until a write releases them.
func (o Object) TransitionFrom(have APIObject) (t Transition) {
	service, ok := have.(*corev1.Service)
	want, wanted := o.Apply.(*corev1ac.ServiceApplyConfiguration)
	if !ok || !wanted {
		return t
	}
	spec, live := want.Spec, &service.Spec
	applied := corev1ac.ServiceSpec()
	if extracted, err := corev1ac.ExtractService(service, v1beta1.ManagedByValue); err == nil && extracted.Spec != nil {
		applied = extracted.Spec
	}
	switch policy := ptr.Deref(spec.IPFamilyPolicy, ""); {
	case policy == "" && ptr.Deref(applied.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack) != corev1.IPFamilyPolicySingleStack:
		spec.WithIPFamilyPolicy(corev1.IPFamilyPolicySingleStack) // the default; a later write leaves the policy to others
	case policy != "" && policy != corev1.IPFamilyPolicySingleStack && len(spec.IPFamilies) == 1 && ptr.Deref(live.IPFamilyPolicy, "") == policy:
		spec.IPFamilies = live.IPFamilies // Kubernetes has added the second one
	}
	class := ptr.Deref(spec.LoadBalancerClass, "")
	requested, ok := service.Annotations[annotations.LoadBalancerClass]
	if !ok { // an operator until release 1.1.0 created it, or the spec had no class, where a policy may set one
		requested = ptr.Deref(applied.LoadBalancerClass, "")
	}
	t.Recreate = class != ptr.Deref(live.LoadBalancerClass, "") && class != requested
	if !ptr.Deref(spec.AllocateLoadBalancerNodePorts, true) {
		for i, port := range live.Ports {
			if port.NodePort != 0 && i < len(spec.Ports) {
				spec.Ports[i].WithNodePort(0)
				t.Changes = true
			}
		}
	}
	return t
}
