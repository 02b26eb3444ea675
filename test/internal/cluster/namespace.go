package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

// CreateNamespace creates a namespace with a generated name and Pod Security level restricted, and returns its name.
func (c *Cluster) CreateNamespace(ctx context.Context, prefix string) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: prefix, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := c.Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	return namespace.Name, c.AdmitClients(ctx, namespace.Name)
}

// AdmitClients creates a NetworkPolicy that admits the pods of the operator's namespace to all pods of Memcacheds in a
// namespace: the clients of tests run there. It adds to the operator's policies.
func (c *Cluster) AdmitClients(ctx context.Context, namespace string) error {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "clients-of-tests"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{v1beta1.LabelManagedBy: v1beta1.ManagedByValue}},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: OperatorNamespace}}}}}},
		},
	}
	if err := c.Create(ctx, policy); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("admitting the clients of tests: %w", err)
	}
	return nil
}

// AnsweringAddress returns the address of a shard's Service once it answers: the node's proxy learns of a pod a moment after
// it is ready.
func (c *Cluster) AnsweringAddress(ctx context.Context, namespace, shard string) (string, error) {
	address, err := c.Address(ctx, namespace, shard)
	if err != nil {
		return "", err
	}
	return address, Eventually(ctx, "answers at "+address, func(ctx context.Context) error { return probe.Ask(ctx, address) })
}

// AnsweringAddresses returns the addresses of the first shards of a Memcached once they answer.
func (c *Cluster) AnsweringAddresses(ctx context.Context, key client.ObjectKey, shards int) ([]string, error) {
	addresses := make([]string, shards)
	for ordinal := range shards {
		var err error
		if addresses[ordinal], err = c.AnsweringAddress(ctx, key.Namespace, ShardName(key.Name, ordinal)); err != nil {
			return nil, err
		}
	}
	return addresses, nil
}

// Claim returns a claim of the default storage.
func Claim(meta metav1.ObjectMeta, size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}}
}
