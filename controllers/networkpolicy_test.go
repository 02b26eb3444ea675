package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
)

func TestJobAdmitsTheOperatorOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	b := w.backup("nightly")
	job, policy := w.job(transfer.Backup, b), &networkingv1.NetworkPolicy{}
	w.read(job.Name, policy)
	if !metav1.IsControlledBy(policy, job) {
		t.Errorf("the policy is not deleted with the Job: %+v", policy.OwnerReferences)
	}
	want := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: job.Spec.Template.Labels},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(11213))}},
			From: []networkingv1.NetworkPolicyPeer{{
				PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "memcached-operator", "control-plane": "controller-manager"}},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "memcached-operator-system"}},
			}},
		}},
	}
	for _, added := range []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"} {
		delete(want.PodSelector.MatchLabels, added) // by the API server
	}
	if diff := cmp.Diff(want, policy.Spec); diff != "" {
		t.Errorf("the policy (-want +got):\n%s", diff)
	}
}

func TestDisabledNetworkPolicyMeansNoneForJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1, func(m *v1alpha1.Memcached) { m.Spec.NetworkPolicy.Mode = v1alpha1.NetworkPolicyDisabled })
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	if w.exists(w.job(transfer.Backup, w.backup("nightly")).Name, &networkingv1.NetworkPolicy{}) {
		t.Error("the Job has a policy")
	}
}
