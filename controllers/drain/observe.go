package drain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

// observation is what a reconcile reads of one node.
type observation struct {
	node *corev1.Node
	// pods of Memcacheds that run on it.
	pods []memcachedPod
}

type memcachedPod struct {
	*corev1.Pod
	memcached *v1beta1.Memcached
}

// observer makes all reads.
type observer struct{ cache client.Reader }

func (r observer) observe(ctx context.Context, node *corev1.Node) (observation, error) {
	obs := observation{node: node}
	var pods corev1.PodList
	if err := r.cache.List(ctx, &pods, client.MatchingFields{index.Node: node.Name}, client.MatchingLabels{
		v1beta1.LabelName: v1beta1.NameValue, v1beta1.LabelManagedBy: v1beta1.ManagedByValue,
	}); err != nil {
		return obs, fmt.Errorf("listing the pods of node %s: %w", node.Name, err)
	}
	for i := range pods.Items {
		pod := memcachedPod{&pods.Items[i], &v1beta1.Memcached{}}
		exists, err := apiserver.Find(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels[v1beta1.LabelInstance]}, pod.memcached, r.cache)
		if err != nil {
			return obs, err
		}
		if exists {
			obs.pods = append(obs.pods, pod)
		}
	}
	return obs, nil
}
