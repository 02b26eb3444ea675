package drain

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// move is a change of the annotation "move" of a pod.
type move struct {
	pod memcachedPod
	// value of the annotation; empty removes it.
	value string
	// event to record after the change, or nil.
	event *event.Event
}

// makePlan returns what the future of a node means for the pods on it.
func makePlan(obs observation) (moves []move) {
	for _, pod := range obs.pods {
		value, reason := annotationOf(pod.memcached, obs.node, pod.Pod)
		if value == pod.Annotations[v1beta1.AnnotationMove] {
			continue
		}
		m := move{pod: pod, value: value}
		if value != "" {
			m.event = new(event.Normal(v1beta1.EventNodeLeaves, "shard %s moves to another node: node %s %s", metav1.GetControllerOf(pod).Name, obs.node.Name, reason))
		}
		moves = append(moves, m)
	}
	return moves
}

// annotationOf returns the value that the annotation "move" of a pod should have, and the reason for one that this package sets. A
// value of a user stays, and so does that of a pod that is being deleted.
func annotationOf(m *v1beta1.Memcached, node *corev1.Node, pod *corev1.Pod) (value, reason string) {
	has := pod.Annotations[v1beta1.AnnotationMove]
	if pod.DeletionTimestamp != nil || !isShards(m, pod) || has != "" && !strings.HasPrefix(has, annotations.NodeLeaves) {
		return has, ""
	}
	handover := m.Spec.UpdateStrategy.Handover
	if reason = leaves(node, handover.NodeDrain.Taints); reason == "" || !handover.MovesEarly() || !resources.CanHandOver(m, pod) {
		return "", ""
	}
	return annotations.NodeLeaves + node.Name, reason
}

// isShards reports whether a pod is one of a Memcached's shards, which a ReplicaSet controls.
func isShards(m *v1beta1.Memcached, pod *corev1.Pod) bool {
	controller := metav1.GetControllerOf(pod)
	if controller == nil || controller.Kind != "ReplicaSet" || m.DeletionTimestamp != nil {
		return false
	}
	_, ok := resources.Ordinal(m.Name, controller.Name)
	return ok
}

// leaves returns why a node is about to go, empty if it isn't. taints are the keys that say so; without them, the default.
func leaves(node *corev1.Node, taints []string) string {
	if node.Spec.Unschedulable {
		return "is cordoned"
	}
	if len(taints) == 0 {
		taints = v1beta1.DefaultNodeTaints
	}
	for _, taint := range node.Spec.Taints {
		if slices.Contains(taints, taint.Key) {
			return "has the taint " + taint.Key
		}
	}
	return ""
}

// sameTaints reports whether two nodes have the same keys of taints.
func sameTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y corev1.Taint) bool { return x.Key == y.Key })
}
