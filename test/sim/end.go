package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// End describes the state in lines, without what differs from one path to
// another that leads there: names and places of pods, times, messages.
func (w *World) End() string {
	var lines []string
	for _, k := range simtest.Kinds {
		for _, name := range w.Server.Names(k) {
			switch k {
			case simtest.KindPod, simtest.KindReplicaSet, simtest.KindMemcached, simtest.KindRestore, simtest.KindBackup:
			case simtest.KindSecret: // stays when there are no shards any more, or the mode is Disabled
			default:
				lines = append(lines, fmt.Sprintf("%s %s %v", k, name, w.Server.Now[k][name].GetLabels()))
				if service, ok := w.Server.Now[k][name].(*corev1.Service); ok {
					lines = append(lines, fmt.Sprintf("Service %s selects %v", name, service.Spec.Selector))
				}
			}
		}
	}
	for _, set := range simtest.All[*appsv1.ReplicaSet](w.Server) {
		lines = append(lines, fmt.Sprintf("ReplicaSet %s: %d of %s, failed %s", set.Name, *set.Spec.Replicas,
			set.Spec.Template.Annotations[annotations.Spec], set.Annotations[annotations.Failed]))
	}
	for _, pod := range simtest.All[*corev1.Pod](w.Server) {
		p := w.Procs[pod.UID]
		if simtest.IsPreflight(pod) { // as many as it took to know
			continue
		}
		if p == nil {
			lines = append(lines, fmt.Sprintf("pod of %s that runs nothing", pod.Labels[v1beta1.LabelInstance]))
			continue
		}
		labels := maps.Clone(pod.Labels)
		delete(labels, annotations.Listed) // stays until the pod is replaced, and nothing selects it
		lines = append(lines, fmt.Sprintf("pod of %s: %s %s %s serves %t, labels %v", p.Shard, p.Image, p.Arguments, simtest.ResourcesText(p.ResourcesOf(pod)), p.Serves, labels))
	}
	slices.Sort(lines)
	for _, m := range simtest.All[*v1beta1.Memcached](w.Server) {
		for _, c := range m.Status.Conditions {
			lines = append(lines, fmt.Sprintf("%s %s=%s %s", m.Name, c.Type, c.Status, c.Reason))
		}
		lines = append(lines, fmt.Sprintf("%s: %d of %d shards, servers %s, version %s", m.Name, m.Status.ReadyShards, *m.Spec.Size, strings.ReplaceAll(fmt.Sprint(m.Status.Servers), w.Server.Namespace, "namespace"), m.Status.Version))
		if b := m.Status.Bootstrap; b != nil {
			lines = append(lines, fmt.Sprintf("%s: bootstrap %s", m.Name, b.Phase))
		}
		for _, s := range m.Status.Shards {
			lines = append(lines, fmt.Sprintf("%s: ready %t, current %t, version %s", s.Name, s.Ready, s.UpToDate, s.Version))
		}
	}
	return strings.Join(lines, "\n")
}

// Starts describes how often the containers and memcached of the existing shards were
// started, how many items they hold, and how many pods they took.
func (w *World) Starts() string {
	var lines []string
	for _, pod := range simtest.All[*corev1.Pod](w.Server) {
		if p := w.Procs[pod.UID]; p != nil && metav1.GetControllerOf(pod) != nil {
			lines = append(lines, fmt.Sprintf("%s: %d containers, %d starts, %d items", p.Shard, p.Containers, p.Starts, p.Items))
		}
	}
	for set, pods := range w.Pods {
		lines = append(lines, fmt.Sprintf("%s: %d pods", set, pods))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
