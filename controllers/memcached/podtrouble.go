package memcached

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// waitingTrouble maps a container's reason for waiting to one of Degraded. A
// reason that is not here passes by itself.
var waitingTrouble = map[string]string{
	"CrashLoopBackOff":           v1alpha1.ReasonShardCrashes,
	"CreateContainerConfigError": v1alpha1.ReasonShardCrashes,
	"CreateContainerError":       v1alpha1.ReasonShardCrashes,
	"ErrImageNeverPull":          v1alpha1.ReasonImagePull,
	"ErrImagePull":               v1alpha1.ReasonImagePull,
	"ImageInspectError":          v1alpha1.ReasonImagePull,
	"ImagePullBackOff":           v1alpha1.ReasonImagePull,
	"InvalidImageName":           v1alpha1.ReasonImagePull,
	"RegistryUnavailable":        v1alpha1.ReasonImagePull,
	"RunContainerError":          v1alpha1.ReasonShardCrashes,
}

// podTrouble returns what keeps a pod from serving when it is not only a matter
// of time, or nil.
func podTrouble(pod *corev1.Pod) *problem {
	if isReady(pod) {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &problem{v1alpha1.ReasonUnschedulable, "no node takes the pod: " + c.Message}
		}
	}
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range containers {
			if trouble := containerTrouble(c); trouble != nil {
				return trouble
			}
		}
	}
	if isNodeLost(pod) {
		return &problem{v1alpha1.ReasonNodeLost, fmt.Sprintf("node %s does not answer; Kubernetes moves the pod after its tolerations' time", pod.Spec.NodeName)}
	}
	return nil
}

// containerTrouble returns what keeps a container from running, or nil.
func containerTrouble(c corev1.ContainerStatus) *problem {
	if w := c.State.Waiting; w != nil && waitingTrouble[w.Reason] != "" {
		reason := waitingTrouble[w.Reason]
		message := fmt.Sprintf("image %s: %s: %s", c.Image, w.Reason, w.Message)
		if last := c.LastTerminationState.Terminated; reason == v1alpha1.ReasonShardCrashes && last != nil {
			if last.ExitCode == 0 {
				// It ended as it was asked to. The kubelet makes an image that the pod had
				// within ten minutes wait as if it had crashed.
				return nil
			}
			message = fmt.Sprintf("image %s: %s", c.Image, lastWords(last))
		}
		return &problem{reason, message}
	}
	if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
		return &problem{v1alpha1.ReasonShardCrashes, fmt.Sprintf("image %s: %s", c.Image, lastWords(t))}
	}
	return nil
}

// lastWords returns what a container said when it ended: the agent writes a
// sentence.
func lastWords(t *corev1.ContainerStateTerminated) string {
	return cmp.Or(strings.TrimSpace(t.Message), fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode))
}

// isNodeLost says whether it is the control plane, not the kubelet, that holds
// the pod for not ready: its containers' last word was that they are.
func isNodeLost(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.ContainersReady {
			return c.Status == corev1.ConditionTrue && pod.Status.Phase == corev1.PodRunning
		}
	}
	return false
}
