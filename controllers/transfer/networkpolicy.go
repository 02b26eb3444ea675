package transfer

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// hasNetworkPolicy reports whether the Job of a transfer gets a network policy.
func (obs Observation) hasNetworkPolicy() bool {
	return obs.Memcached == nil || obs.Memcached.Spec.Access.NetworkPolicy.Mode != v1beta1.NetworkPolicyDisabled
}

// networkPolicy returns the policy that admits only the operator to a Job's pods, which report
// their progress. It is created after the Job and deleted with it, so it costs one write.
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=create

func (o Options) networkPolicy(job *batchv1.Job) *networkingv1.NetworkPolicy {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name, Labels: job.Labels,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true)}},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: job.Labels},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
	if o.OperatorNamespace != "" {
		policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(snapshotwire.Port))}},
			From: []networkingv1.NetworkPolicyPeer{{
				PodSelector:       &metav1.LabelSelector{MatchLabels: annotations.OperatorPodLabels()},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: o.OperatorNamespace}},
			}},
		}}
	}
	return policy
}
