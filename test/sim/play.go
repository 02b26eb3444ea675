package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// Play creates a Memcached of a spec in a world without faults and has it changed to the others, one after the other, each when
// the one before has converged. It returns how the Memcached ends, as Summary does. version is the operator's default version
// of memcached, and resizing what Kubernetes resizes of pods.
func Play(version string, resizing resources.Resizing, name string, specs ...map[string]any) (string, error) {
	w := newWorld(1, faults{})
	w.resizing = resizing
	w.setDefault(version)
	for i, spec := range specs {
		taken := i == 0 && w.Make(name, spec) || i > 0 && w.Edit(name, func(map[string]any) map[string]any { return spec })
		if !taken {
			return "", fmt.Errorf("spec %d is not taken: %s", i, w.tail(1))
		}
		if w.Rest(); w.broken != "" {
			return "", fmt.Errorf("spec %d: %s\n%s", i, w.broken, w.tail(80))
		}
	}
	return Summary(context.Background(), w.Server, client.ObjectKey{Namespace: w.Server.Namespace, Name: name})
}

// Summary returns in lines how a Memcached and its shards stand, as far as that can be compared with one in another cluster:
// the specs of templates and pods, how often containers were started, how memcached last started, and the conditions.
func Summary(ctx context.Context, c client.Reader, key client.ObjectKey) (string, error) {
	var (
		m    v1beta1.Memcached
		sets appsv1.ReplicaSetList
		pods corev1.PodList
	)
	ours := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels(resources.Labels(key.Name))}
	if err := c.Get(ctx, key, &m); err != nil {
		return "", err
	}
	if err := c.List(ctx, &sets, ours...); err != nil {
		return "", err
	}
	if err := c.List(ctx, &pods, ours...); err != nil {
		return "", err
	}
	var lines []string
	for _, set := range sets.Items {
		lines = append(lines, fmt.Sprintf("ReplicaSet %s: %d of %s", set.Name, *set.Spec.Replicas, set.Spec.Template.Annotations[annotations.Spec]))
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil || pod.Labels[v1beta1.LabelName] != v1beta1.NameValue {
			continue
		}
		line := fmt.Sprintf("pod of shard %s: %s, %s", pod.Labels[v1beta1.LabelShard], simtest.Container(&pod).Image, pod.Annotations[annotations.Spec])
		for _, status := range pod.Status.ContainerStatuses {
			line += fmt.Sprintf(", ready %t after %d restarts", status.Ready, status.RestartCount)
		}
		lines = append(lines, line)
	}
	for _, shard := range m.Status.Shards {
		lines = append(lines, fmt.Sprintf("%s: ready %t, current %t, version %s, %s start", shard.Name, shard.Ready, shard.UpToDate, shard.Version, shard.StartResult))
	}
	for _, name := range []string{v1beta1.ConditionAvailable, v1beta1.ConditionProgressing, v1beta1.ConditionDegraded} {
		if condition := meta.FindStatusCondition(m.Status.Conditions, name); condition != nil {
			lines = append(lines, fmt.Sprintf("%s is %s: %s", name, condition.Status, condition.Reason))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}
