package scale

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// runningPod is what kubelet and agent know of a pod.
type runningPod struct {
	uid types.UID
	ip  string
	// seen is when the pod was first seen with a node.
	seen time.Time
	// silent agents don't answer.
	silent bool
	// image and arguments of the running container, and how many containers the pod has had.
	image, arguments string
	containers       int
	start            agentwire.Start
	// stop is the announced stop in the pod's annotation, announced the one that the agent has read, and used the one by
	// which the previous container stopped.
	stop            string
	stopSince       time.Time
	announced, used string
}

// advance applies the changes that are due now. It returns when the next one is due; 0 means never.
func (p *runningPod) advance(pod *corev1.Pod, now time.Time) time.Duration {
	image, arguments := pod.Spec.Containers[0].Image, pod.Annotations[annotations.Arguments]
	switch {
	case p.containers == 0:
		p.begin(image, arguments, agentwire.Start{Result: agentwire.StartCold, Reason: "new pod"}, now)
	case p.image != image:
		p.used = p.announced
		p.begin(image, arguments, agentwire.Start{Result: agentwire.StartWarm, Items: items, ItemsBefore: items}, now)
	}
	if stop := pod.Annotations[annotations.Stop]; stop != p.stop {
		p.stop, p.stopSince = stop, now
	}
	var again time.Duration
	if p.announced != p.stop {
		if again = p.stopSince.Add(AnnotationDelay).Sub(now); again <= 0 {
			p.announced, again = p.stop, 0
		}
	}
	if wait := p.start.At.Sub(now); wait > 0 && (again == 0 || wait < again) {
		again = wait
	}
	return again
}

// items is how many items an agent reports.
const items = 1000

func (p *runningPod) begin(image, arguments string, start agentwire.Start, now time.Time) {
	p.image, p.arguments, p.start = image, arguments, start
	p.containers++
	p.start.At = now.Add(StartDelay)
}

func (p *runningPod) isReady(now time.Time) bool { return !now.Before(p.start.At) }

func (p *runningPod) containerID() string {
	return fmt.Sprintf("containerd://%d-%s", p.containers, p.uid)
}

// status returns the agent's answer.
func (p *runningPod) status(now time.Time) agentwire.Status {
	s := agentwire.Status{
		Phase: agentwire.PhaseServing, PodUID: string(p.uid), AgentVersion: "bench", Version: versionOf(p.image),
		AnnouncedStop: p.announced, Start: p.start, Items: items,
	}
	if p.announced == p.used {
		s.AnnouncedStop = "" // it was for the previous container
	}
	if json.Unmarshal([]byte(p.arguments), &s.Arguments) != nil {
		s.ArgumentsError = "the arguments are not a list of strings"
	}
	if !p.isReady(now) {
		s.Phase, s.Start = agentwire.PhaseStarting, agentwire.Start{}
	}
	return s
}

// isReported reports whether the pod's status is up to date.
func (p *runningPod) isReported(pod *corev1.Pod, now time.Time) bool {
	statuses := pod.Status.ContainerStatuses
	return len(statuses) == 1 && statuses[0].ContainerID == p.containerID() && statuses[0].Ready == p.isReady(now)
}

// write updates the pod's status.
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

// runPreflight lets a preflight check succeed.
func (p *runningPod) runPreflight(pod *corev1.Pod, now time.Time) (write bool, again time.Duration) {
	if pod.Status.Phase == corev1.PodSucceeded {
		return false, 0
	}
	if wait := p.seen.Add(StartDelay).Sub(now); wait > 0 {
		return false, wait
	}
	image := pod.Spec.Containers[0].Image
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Image: image, ImageID: image,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", ContainerID: "containerd://" + string(p.uid), Message: fmt.Sprintf(`{"version":%q}`, versionOf(image)),
		}}}}
	return true, 0
}

// versionOf returns the version of memcached in an image, which is its tag.
func versionOf(image string) string { return image[strings.LastIndex(image, ":")+1:] }
