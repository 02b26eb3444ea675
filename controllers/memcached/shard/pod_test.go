package shard

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodsAreOrderedByWhoServesAndWhoWill(t *testing.T) {
	newPod := func(name string, createdAt int64, ready, terminating bool, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(createdAt, 0)}}
		if p.Status.Phase = phase; ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if terminating {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(createdAt+1, 0)}
		}
		return p
	}
	want := []*corev1.Pod{
		newPod("ready, newer", 20, true, false, corev1.PodRunning),
		newPod("ready", 10, true, false, corev1.PodRunning),
		newPod("ready and terminating", 30, true, true, corev1.PodRunning),
		newPod("starting for longer, a", 5, false, false, corev1.PodPending),
		newPod("starting for longer, b", 5, false, false, corev1.PodPending),
		newPod("starting", 40, false, false, corev1.PodPending),
		newPod("finished", 60, false, false, corev1.PodFailed),
		newPod("terminating", 50, false, true, corev1.PodRunning),
	}
	pods := slices.Clone(want)
	slices.Reverse(pods)
	slices.SortFunc(pods, ComparePods)
	for i := range want {
		if pods[i] != want[i] {
			t.Errorf("position %d: got %q, want %q", i, pods[i].Name, want[i].Name)
		}
	}
}

// The kubelet applies its crash-loop back-off to a planned stop, too.
func TestWaitingAfterPlannedStopIsNoProblem(t *testing.T) {
	for code, want := range map[int32]bool{0: false, 1: true, 137: true} {
		c := corev1.ContainerStatus{
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}},
		}
		if got := containerProblem(c); (got != nil) != want {
			t.Errorf("exit code %d: problem %+v", code, got)
		}
	}
}
