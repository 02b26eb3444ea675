package main

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// runningPod is what a kubelet and an agent know of a pod. Its kubelet looks after it
// in one goroutine at a time.
type runningPod struct {
	uid types.UID
	ip  string
	// seen is when the pod was first there with a node.
	seen time.Time
	// image and arguments with which memcached was started in the container that runs,
	// which is the so-many-eth of the pod and is ready from a moment on.
	image, arguments string
	containers       int
	start            agentapi.Start
	// stop is the announcement on the pod and since when it stands, announced the one
	// that the agent has read, and used the one by which the container before ended.
	stop            string
	stopSince       time.Time
	announced, used string
}

// advance does what is due with a pod by now, and returns when the next thing is; 0 is
// never.
func (p *runningPod) advance(pod *corev1.Pod, now time.Time) time.Duration {
	image, arguments := pod.Spec.Containers[0].Image, pod.Annotations[v1alpha1.AnnotationArguments]
	switch {
	case p.containers == 0:
		p.begin(image, arguments, agentapi.Start{Result: agentapi.StartCold, Reason: "there was nothing to start with"}, now)
	case p.image != image:
		p.used = p.announced
		p.begin(image, arguments, agentapi.Start{Result: agentapi.StartWarm, Items: items, ItemsBefore: items}, now)
	}
	if stop := pod.Annotations[v1alpha1.AnnotationStop]; stop != p.stop {
		p.stop, p.stopSince = stop, now
	}
	var again time.Duration
	if p.announced != p.stop {
		if again = p.stopSince.Add(brings).Sub(now); again <= 0 {
			p.announced, again = p.stop, 0
		}
	}
	if wait := p.start.At.Sub(now); wait > 0 && (again == 0 || wait < again) {
		again = wait
	}
	return again
}

// items is how many each shard holds, as far as its agent tells.
const items = 1000

// begin starts a container.
func (p *runningPod) begin(image, arguments string, start agentapi.Start, now time.Time) {
	p.image, p.arguments, p.start = image, arguments, start
	p.containers++
	p.start.At = now.Add(starts)
}

func (p *runningPod) isReady(now time.Time) bool { return !now.Before(p.start.At) }

func (p *runningPod) containerID() string {
	return fmt.Sprintf("containerd://%s-%d", p.uid, p.containers)
}

// status is what the agent answers.
func (p *runningPod) status(now time.Time) agentapi.Status {
	s := agentapi.Status{
		Phase: agentapi.PhaseServing, PodUID: string(p.uid), AgentVersion: "bench", Version: versionOf(p.image),
		AnnouncedStop: p.announced, Start: p.start, Items: items,
	}
	if p.announced == p.used {
		s.AnnouncedStop = "" // it means nothing to the container that runs now
	}
	if json.Unmarshal([]byte(p.arguments), &s.Arguments) != nil {
		s.ArgumentsError = "the arguments are no list of words"
	}
	if !p.isReady(now) {
		s.Phase, s.Start = agentapi.PhaseStarting, agentapi.Start{}
	}
	return s
}

// isTold says whether the pod's status tells how it is.
func (p *runningPod) isTold(pod *corev1.Pod, now time.Time) bool {
	statuses := pod.Status.ContainerStatuses
	return len(statuses) == 1 && statuses[0].ContainerID == p.containerID() && statuses[0].Ready == p.isReady(now)
}

// write writes how the pod is into its status.
func (p *runningPod) write(s *corev1.PodStatus, now time.Time) {
	ready := corev1.ConditionFalse
	if p.isReady(now) {
		ready = corev1.ConditionTrue
	}
	s.Phase, s.PodIP, s.PodIPs = corev1.PodRunning, p.ip, []corev1.PodIP{{IP: p.ip}}
	if s.StartTime == nil {
		s.StartTime = &metav1.Time{Time: now}
	}
	s.Conditions = nil
	for _, c := range []struct {
		kind   corev1.PodConditionType
		status corev1.ConditionStatus
	}{
		{corev1.PodScheduled, corev1.ConditionTrue}, {corev1.PodReadyToStartContainers, corev1.ConditionTrue}, {corev1.PodInitialized, corev1.ConditionTrue},
		{corev1.ContainersReady, ready}, {corev1.PodReady, ready},
	} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: c.kind, Status: c.status, LastTransitionTime: metav1.Time{Time: now}})
	}
	s.ContainerStatuses = []corev1.ContainerStatus{{
		Name: containerName, Image: p.image, ImageID: p.image, ContainerID: p.containerID(), Ready: p.isReady(now), Started: new(true),
		RestartCount: int32(p.containers - 1), //nolint:gosec // a few
		State:        corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: now}}},
	}}
}
