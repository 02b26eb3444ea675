package shard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/podresult"
)

// Problem is a reason of Degraded and a message for the user.
type Problem struct{ Reason, Message string }

// IsReady reports whether Kubernetes routes a shard's clients to the pod.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// IsRunning reports whether the pod's memcached container is running.
func IsRunning(pod *corev1.Pod) bool {
	c := podresult.Container(pod, resources.Container)
	return c != nil && c.State.Running != nil
}

// ContainerID returns the first characters of the ID of the pod's memcached container,
// without the runtime's name. It changes with every restart of the container.
func ContainerID(pod *corev1.Pod) string {
	c := podresult.Container(pod, resources.Container)
	if c == nil {
		return ""
	}
	_, id, _ := strings.Cut(c.ContainerID, "://")
	return id[:min(len(id), v1beta1.MaxContainerID)]
}

// ComparePods orders the pods of a shard: the one that serves first, then the one that
// will. While a replacement starts, the terminating pod keeps serving. Of two that start, the
// newer one only waits: the ReplicaSet creates it when the terminating pod is deleted, until the
// operator wants one pod again.
func ComparePods(a, b *corev1.Pod) int {
	const starting = 2
	rank := func(p *corev1.Pod) int {
		terminating := p.DeletionTimestamp != nil
		switch {
		case IsReady(p) && !terminating:
			return 0
		case IsReady(p):
			return 1
		case !terminating && !podresult.IsFinished(p):
			return starting
		default:
			return 3
		}
	}
	age := a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	if rank(a) != starting {
		age = -age // the newer one first
	}
	return cmp.Or(rank(a)-rank(b), age, strings.Compare(a.Name, b.Name))
}

// Current returns the pods of a shard, of which it has the order of ComparePods, without those that the kubelet has finished: after an
// eviction, Kubernetes keeps them, and a finalizer keeps one that is deleted. ReplicaSets ignore them. If there is no other pod, the newest
// one says why.
func Current(pods []*corev1.Pod) []*corev1.Pod {
	current := slices.DeleteFunc(slices.Clone(pods), podresult.IsFinished)
	if len(current) == 0 {
		return pods[:min(1, len(pods))]
	}
	return current
}

// podState returns the state of a pod without its revision and outcome. A second pod that no node
// accepts yet is not broken: nothing waits for it.
func podState(pod *corev1.Pod, second bool) rollout.Pod {
	p := rollout.Pod{State: rollout.Starting, Terminating: pod.DeletionTimestamp != nil}
	if problem := PodProblem(pod); problem != nil {
		p.Reason = problem.Message
		if !IsRunning(pod) && !(second && problem.Reason == v1beta1.ReasonUnschedulable) {
			p.State = rollout.Broken
		}
	}
	if IsReady(pod) {
		p.State = rollout.Serving
	}
	return p
}

// waitingReasons maps a container's reason for waiting to a reason of Degraded. Other
// reasons are temporary.
var waitingReasons = map[string]string{
	"CrashLoopBackOff":           v1beta1.ReasonShardCrashes,
	"CreateContainerConfigError": v1beta1.ReasonShardCrashes,
	"CreateContainerError":       v1beta1.ReasonShardCrashes,
	"ErrImageNeverPull":          v1beta1.ReasonImageCannotBePulled,
	"ErrImagePull":               v1beta1.ReasonImageCannotBePulled,
	"ImageInspectError":          v1beta1.ReasonImageCannotBePulled,
	"ImagePullBackOff":           v1beta1.ReasonImageCannotBePulled,
	"InvalidImageName":           v1beta1.ReasonImageCannotBePulled,
	"RegistryUnavailable":        v1beta1.ReasonImageCannotBePulled,
	"RunContainerError":          v1beta1.ReasonShardCrashes,
}

// PodProblem returns what keeps a pod from becoming ready when waiting alone doesn't
// help, or nil.
func PodProblem(pod *corev1.Pod) *Problem {
	if IsReady(pod) {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &Problem{v1beta1.ReasonUnschedulable, "no node accepts the pod: " + c.Message}
		}
	}
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range containers {
			if problem := containerProblem(c); problem != nil {
				return problem
			}
		}
	}
	if isNodeLost(pod) {
		return &Problem{v1beta1.ReasonNodeLost, fmt.Sprintf(
			"node %s doesn't respond; Kubernetes replaces the pod when its tolerations expire", pod.Spec.NodeName)}
	}
	return nil
}

// stuckAfter is how long after its grace period a pod may still exist.
const stuckAfter = 5 * time.Minute

// StuckProblem returns what keeps a pod that is being deleted from disappearing, or nil, and after which time it may be known. Only its
// kubelet can say that its containers have stopped, so that updates wait for it.
func StuckProblem(pod *corev1.Pod, now time.Time) (problem *Problem, in time.Duration) {
	if pod.DeletionTimestamp == nil || pod.Spec.NodeName == "" || podresult.IsFinished(pod) {
		return nil, 0
	}
	if left := stuckAfter - now.Sub(pod.DeletionTimestamp.Time); left > 0 {
		return nil, left
	}
	return &Problem{v1beta1.ReasonNodeLost, fmt.Sprintf("pod %s has been terminating for longer than its grace period, and node %[2]s doesn't say that it has stopped; "+
		"if the node no longer exists, remove it, or taint it out-of-service: kubectl taint node %[2]s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
		pod.Name, pod.Spec.NodeName)}, 0
}

// containerProblem returns what keeps a container from running, or nil.
func containerProblem(c corev1.ContainerStatus) *Problem {
	if w := c.State.Waiting; w != nil && waitingReasons[w.Reason] != "" {
		reason := waitingReasons[w.Reason]
		message := fmt.Sprintf("image %s: %s: %s", c.Image, w.Reason, w.Message)
		if last := c.LastTerminationState.Terminated; reason == v1beta1.ReasonShardCrashes && last != nil {
			if last.ExitCode == 0 {
				// A planned stop. The kubelet applies its crash-loop back-off to an image that
				// the pod ran within the last ten minutes.
				return nil
			}
			message = fmt.Sprintf("image %s: %s", c.Image, terminationMessage(last))
		}
		return &Problem{reason, message}
	}
	if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
		return &Problem{v1beta1.ReasonShardCrashes, fmt.Sprintf("image %s: %s", c.Image, terminationMessage(t))}
	}
	return nil
}

// terminationMessage returns what the agent wrote to the termination log, or the kubelet's
// reason.
func terminationMessage(t *corev1.ContainerStateTerminated) string {
	return cmp.Or(strings.TrimSpace(t.Message), fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode))
}

// isNodeLost reports whether the control plane, and not the kubelet, marked the pod as not
// ready: the kubelet's last report says that its containers are. The kubelet has a reason, such as a readiness gate.
func isNodeLost(pod *corev1.Pod) bool {
	lost := false
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Reason != "":
			return false
		case c.Type == corev1.ContainersReady:
			lost = c.Status == corev1.ConditionTrue && pod.Status.Phase == corev1.PodRunning
		}
	}
	return lost
}

// CreationProblem returns why the API server rejects the pods of a ReplicaSet, or nil.
func CreationProblem(set *appsv1.ReplicaSet) *Problem {
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue && c.Reason != failedDelete {
			return &Problem{v1beta1.ReasonApplyRejected, "the API server rejects the pod: " + c.Message}
		}
	}
	return nil
}

// failedDelete is the reason of the same condition if a pod couldn't be deleted.
const failedDelete = "FailedDelete"

// creationRetry is how long a ReplicaSet without its pod waits before it is changed, which makes its controller try again. The
// controller's own back-off grows to a quarter of an hour, so that a quota that is raised would help no sooner.
const creationRetry = 30 * time.Second

// RetryCreation returns when the ReplicaSet was changed last for that reason, the current time if it is due, and after which time
// to change it next. There is nothing to change while its pods are created.
func (o *Observation) RetryCreation(now time.Time) (at string, next time.Duration) {
	if CreationProblem(o.Set) == nil {
		return "", 0
	}
	at = o.Set.Annotations[annotations.CreationRetried]
	if last, err := time.Parse(time.RFC3339, at); err == nil && !now.Before(last) && now.Sub(last) < creationRetry {
		return at, creationRetry - now.Sub(last)
	}
	return now.UTC().Format(time.RFC3339), creationRetry
}
