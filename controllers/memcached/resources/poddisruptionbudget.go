package resources

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// podDisruptionBudget returns the budget that lets drains evict one shard at a time.
func podDisruptionBudget(m *v1alpha1.Memcached) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(m.Name, m.Namespace).
		WithLabels(Labels(m.Name)).
		WithOwnerReferences(owner(m)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Labels(m.Name))))
}
