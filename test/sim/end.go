package sim

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// End describes the state in lines, without what differs from one path to
// another that leads there: names and places of pods, times, messages.
func (w *World) End() string {
	var lines []string
	for _, k := range kinds {
		for _, name := range w.server.names(k) {
			switch k {
			case podKind, replicaSetKind, memcachedKind, restoreKind, backupKind:
			case secretKind: // stays when there are no shards any more, or the mode is Disabled
			default:
				lines = append(lines, fmt.Sprintf("%s %s %v", k, name, w.server.now[k][name].GetLabels()))
			}
		}
	}
	for _, set := range all[*appsv1.ReplicaSet](w.server) {
		lines = append(lines, fmt.Sprintf("ReplicaSet %s: %d of %s, failed %s", set.Name, *set.Spec.Replicas,
			set.Spec.Template.Annotations[annotations.Spec], set.Annotations[annotations.Failed]))
	}
	for _, pod := range all[*corev1.Pod](w.server) {
		p := w.procs[pod.UID]
		if isPreflight(pod) { // as many as it took to know
			continue
		}
		if p == nil {
			lines = append(lines, fmt.Sprintf("pod of %s that runs nothing", pod.Labels[v1alpha1.LabelInstance]))
			continue
		}
		lines = append(lines, fmt.Sprintf("pod of %s: %s %s %s serves %t, labels %v", p.shard, p.image, p.arguments, resourcesText(p.resourcesOf(pod)), p.serves, pod.Labels))
	}
	slices.Sort(lines)
	for _, m := range all[*v1alpha1.Memcached](w.server) {
		for _, c := range m.Status.Conditions {
			lines = append(lines, fmt.Sprintf("%s %s=%s %s", m.Name, c.Type, c.Status, c.Reason))
		}
		lines = append(lines, fmt.Sprintf("%s: %s shards, servers %s, version %s", m.Name, m.Status.Ready, strings.ReplaceAll(fmt.Sprint(m.Status.Servers), w.server.namespace, "namespace"), m.Status.Version))
		for _, s := range m.Status.Shards {
			lines = append(lines, fmt.Sprintf("%s: ready %t, current %t, version %s", s.Name, s.Ready, s.Current, s.Version))
		}
	}
	return strings.Join(lines, "\n")
}

// Starts describes how often the containers and memcached of the existing shards were
// started, how many items they hold, how many pods they took, and what was restored before the first.
func (w *World) Starts() string {
	var lines []string
	for _, pod := range all[*corev1.Pod](w.server) {
		if p := w.procs[pod.UID]; p != nil && metav1.GetControllerOf(pod) != nil {
			lines = append(lines, fmt.Sprintf("%s: %d containers, %d starts, %d items", p.shard, p.containers, p.starts, p.items))
		}
	}
	for set, pods := range w.pods {
		lines = append(lines, fmt.Sprintf("%s: %d pods, served with %s", set, pods, w.servedWith[set]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
