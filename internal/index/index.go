// Package index lets lists from the manager's cache find related objects without a scan
// of the namespace, which thousands of Memcacheds may share:
//
//	client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingFields{index.Instance: name})
package index

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// The indexes.
const (
	// Instance is the label of that name: the Memcached or the Job that an object belongs to.
	Instance = "instance"
	// Memcached is the one that a backup or a restore refers to.
	Memcached = "memcached"
	// Backup is the one that a restore refers to.
	Backup = "backup"
	// Node is the one that a pod runs on.
	Node = "node"
	// Schedule is the label that a backup got from its schedule.
	Schedule = "schedule"
	// Foreign is "true" for a PodDisruptionBudget that no Memcached controls.
	Foreign = "foreign"
)

// Setup adds the indexes to a cache.
func Setup(ctx context.Context, cache client.FieldIndexer) error {
	for _, index := range []struct {
		kind  client.Object
		name  string
		value func(client.Object) string
	}{
		{&appsv1.ReplicaSet{}, Instance, label(v1beta1.LabelInstance)},
		{&corev1.Service{}, Instance, label(v1beta1.LabelInstance)},
		{&policyv1.PodDisruptionBudget{}, Instance, label(v1beta1.LabelInstance)},
		{&policyv1.PodDisruptionBudget{}, Foreign, func(o client.Object) string {
			if IsForeign(o) {
				return "true"
			}
			return ""
		}},
		{&networkingv1.NetworkPolicy{}, Instance, label(v1beta1.LabelInstance)},
		{&corev1.Pod{}, Instance, label(v1beta1.LabelInstance)},
		{&corev1.Pod{}, Node, func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName }},
		{&v1beta1.MemcachedBackup{}, Schedule, label(v1beta1.LabelSchedule)},
		{&v1beta1.MemcachedBackup{}, Memcached, func(o client.Object) string { return o.(*v1beta1.MemcachedBackup).Spec.MemcachedRef.Name }},
		{&v1beta1.MemcachedRestore{}, Memcached, func(o client.Object) string { return o.(*v1beta1.MemcachedRestore).Spec.MemcachedRef.Name }},
		{&v1beta1.MemcachedRestore{}, Backup, func(o client.Object) string {
			if ref := o.(*v1beta1.MemcachedRestore).Spec.BackupRef; ref != nil {
				return ref.Name
			}
			return ""
		}},
	} {
		err := cache.IndexField(ctx, index.kind, index.name, func(o client.Object) []string {
			if v := index.value(o); v != "" {
				return []string{v}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.kind, index.name, err)
		}
	}
	return nil
}

// IsForeign reports whether no Memcached controls an object.
func IsForeign(o client.Object) bool {
	controller := metav1.GetControllerOf(o)
	return controller == nil || controller.Kind != "Memcached"
}

func label(name string) func(client.Object) string {
	return func(o client.Object) string { return o.GetLabels()[name] }
}
