package resources

import (
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Shard is the desired state of one shard.
type Shard struct {
	// Revision of its template.
	Revision PodRevision
	// Surge creates a second pod.
	Surge bool
	// HoldUntil delays the readiness of its next pod until then, as RFC 3339; empty for no delay.
	HoldUntil string
	// Annotations of its ReplicaSet.
	Annotations map[string]string
}

// replicaSet returns the ReplicaSet that creates the pod of a shard.
func replicaSet(m *v1alpha1.Memcached, ordinal int, shard Shard, pod *corev1ac.PodTemplateSpecApplyConfiguration) *appsv1ac.ReplicaSetApplyConfiguration {
	replicas := int32(1)
	if shard.Surge {
		replicas = 2
	}
	if shard.HoldUntil != "" {
		pod.WithAnnotations(map[string]string{annotations.HoldUntil: shard.HoldUntil})
	}
	return appsv1ac.ReplicaSet(ShardName(m.Name, ordinal), m.Namespace).
		WithLabels(shardLabels(m.Name, ordinal)).
		WithAnnotations(shard.Annotations).
		WithOwnerReferences(owner(m)).
		WithSpec(appsv1ac.ReplicaSetSpec().
			WithReplicas(replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(shardLabels(m.Name, ordinal))).
			WithTemplate(pod))
}
