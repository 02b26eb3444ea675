package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestAnotherUserAndServiceAccountKeepTheItems(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", suite.Small(1))
	s.Available("cache")
	before, set := s.Pods("cache")["cache-0"], s.Written("cache", 0, 1000)

	account := memcachedac.PodSecurity().WithServiceAccountName("cache")
	s.Apply("cache", suite.Small(1).WithPodSecurity(account))
	m, message := s.Degraded("cache", v1alpha1.ReasonUpdateFailed)
	s.contains(message, "cache-0", `serviceaccount "cache" not found`)
	if m.Status.Nodes[0] != before.Name || m.Status.Ready != "1/1" {
		t.Errorf("without the service account, the status has %s shards and the pods %v", m.Status.Ready, m.Status.Nodes)
	}
	s.Must(k.Create(s.Ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "cache"}}))
	s.Apply("cache", suite.Small(1).WithPodSecurity(account.WithRunAsUser(1000).WithRunAsGroup(2000)))
	s.Updated("cache")

	pod := s.Pods("cache")["cache-0"]
	if security := pod.Spec.SecurityContext; pod.Spec.ServiceAccountName != "cache" || *security.RunAsUser != 1000 || *security.RunAsGroup != 2000 || !*security.RunAsNonRoot {
		t.Errorf("the pod has the service account %s and runs as %+v", pod.Spec.ServiceAccountName, security)
	}
	if len(pod.Spec.Volumes) != len(before.Spec.Volumes) {
		t.Errorf("the pod has the volumes %+v, want no token", pod.Spec.Volumes)
	}
	s.Holds(set)
}
