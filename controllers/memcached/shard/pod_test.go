package shard

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
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

func TestProblemOfAPodRequiresManualIntervention(t *testing.T) {
	unschedulable := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes"}}
	}
	waiting := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			shardtest.Crashing(p)
			p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: "message"}
		}
	}
	running := func(p *corev1.Pod) {
		shardtest.Starting(p)
		p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		reason string
		first  rollout.State // of the pod as the first one of its shard
		second rollout.State
	}{
		"it is ready":        {func(*corev1.Pod) {}, "", rollout.Serving, rollout.Serving},
		"it starts":          {shardtest.Starting, "", rollout.Starting, rollout.Starting},
		"no node accepts it": {unschedulable, v1beta1.ReasonUnschedulable, rollout.Broken, rollout.Starting},
		"its container exited": {func(p *corev1.Pod) {
			shardtest.Starting(p)
			p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
		}, v1beta1.ReasonShardCrashes, rollout.Broken, rollout.Broken},
		"its container stopped": {func(p *corev1.Pod) {
			shardtest.Starting(p)
			p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{}
		}, "", rollout.Starting, rollout.Starting},
		"it crashes again":          {waiting("CrashLoopBackOff"), v1beta1.ReasonShardCrashes, rollout.Broken, rollout.Broken},
		"its image can't be pulled": {waiting("ImagePullBackOff"), v1beta1.ReasonImageCannotBePulled, rollout.Broken, rollout.Broken},
		"its container is created":  {waiting("ContainerCreating"), "", rollout.Starting, rollout.Starting},
		"the agent can't be installed": {func(p *corev1.Pod) {
			shardtest.Starting(p)
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
		}, v1beta1.ReasonImageCannotBePulled, rollout.Broken, rollout.Broken},
		"its node doesn't respond": {func(p *corev1.Pod) {
			running(p)
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
		}, v1beta1.ReasonNodeLost, rollout.Starting, rollout.Starting},
		"a load balancer doesn't send it requests yet": {func(p *corev1.Pod) {
			running(p)
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady"}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
		}, "", rollout.Starting, rollout.Starting},
		"it runs and isn't ready": {func(p *corev1.Pod) {
			running(p)
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}}
		}, "", rollout.Starting, rollout.Starting},
	} {
		pod := shardtest.Pod("cache-0-x", podRevision(t))
		c.change(pod)
		reason := ""
		if problem := PodProblem(pod); problem != nil {
			reason = problem.Reason
		}
		first, second := podState(pod, false).State, podState(pod, true).State
		if reason != c.reason || first != c.first || second != c.second {
			t.Errorf("%s: problem %q, %s as the first pod, %s as the second; want %q, %s, %s", name, reason, first, second, c.reason, c.first, c.second)
		}
	}
}
