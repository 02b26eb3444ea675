package memcached

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAContainerThatEndedAsItWasAskedToAndIsMadeToWaitIsNoTrouble(t *testing.T) {
	for code, trouble := range map[int32]bool{0: false, 1: true, 137: true} {
		c := corev1.ContainerStatus{
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}},
		}
		if got := containerTrouble(c); (got != nil) != trouble {
			t.Errorf("after exit code %d the trouble is %+v", code, got)
		}
	}
}
