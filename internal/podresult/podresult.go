// Package podresult reads what a pod came to that runs one container to its end. Platforms inject others, anywhere in the list, which
// may run forever: so neither the pod's phase nor a position says it.
package podresult

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Stage is how far a pod is.
type Stage int

// The stages.
const (
	// Waiting: its container hasn't started.
	Waiting Stage = iota
	// Running: its container runs.
	Running
	// Succeeded: its container has exited with 0.
	Succeeded
	// Failed: its container has terminated otherwise.
	Failed
	// Stopped: the pod has terminated, and its container never ran, as far as is known.
	Stopped
)

// Container returns the status of the container of that name, or nil.
func Container(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[i]
}

// Terminated returns how the container of that name has terminated, or nil.
func Terminated(pod *corev1.Pod, name string) *corev1.ContainerStateTerminated {
	if c := Container(pod, name); c != nil {
		return c.State.Terminated
	}
	return nil
}

// Of returns the stage of a pod by its container of that name.
func Of(pod *corev1.Pod, name string) Stage {
	c, terminated := Container(pod, name), Terminated(pod, name)
	switch {
	case terminated != nil && terminated.ExitCode == 0:
		return Succeeded
	case terminated != nil:
		return Failed
	case IsFinished(pod):
		return Stopped
	case c != nil && c.State.Running != nil:
		return Running
	default:
		return Waiting
	}
}

// Only returns a pod without the statuses of the containers that aren't of that name and don't run before it.
func Only(pod *corev1.Pod, name string) *corev1.Pod {
	only := *pod
	only.Status.ContainerStatuses = nil
	if c := Container(pod, name); c != nil {
		only.Status.ContainerStatuses = []corev1.ContainerStatus{*c}
	}
	return &only
}

// IsFinished reports whether all containers of a pod have terminated.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// Lingers reports whether the container of that name has terminated, and another one keeps the pod from doing so. The kubelet
// terminates those that Kubernetes itself knows as sidecars: they are init containers.
func Lingers(pod *corev1.Pod, name string) bool {
	return Terminated(pod, name) != nil && !IsFinished(pod) &&
		slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil })
}

// FailsOtherwise reports whether a pod whose container of that name has succeeded fails because of another one.
func FailsOtherwise(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name != name && c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
	})
}
