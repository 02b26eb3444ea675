package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func shardPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "m00001-0-x", UID: "uid", Annotations: map[string]string{v1alpha1.AnnotationArguments: `["-m","64"]`}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: containerName, Image: "memcached:1.6.38"}}},
	}
}

func TestAPodIsReadyAMomentAfterItsContainerStarted(t *testing.T) {
	pod, p := shardPod(), &runningPod{uid: "uid", ip: "127.1.0.1"}
	if again := p.advance(pod, noon); again != starts {
		t.Errorf("it is looked at again after %s, want %s", again, starts)
	}
	if p.isTold(pod, noon) {
		t.Error("the status of a pod that started is not to be written")
	}
	p.write(&pod.Status, noon)
	if !p.isTold(pod, noon) || pod.Status.ContainerStatuses[0].Ready || pod.Status.PodIP != "127.1.0.1" {
		t.Errorf("it was written as %+v", pod.Status)
	}
	if s := p.status(noon); s.Phase == agentapi.PhaseServing || s.Start.Result != "" {
		t.Errorf("its agent tells of a start that is yet to come: %+v", s)
	}
	later := noon.Add(starts)
	if again := p.advance(pod, later); again != 0 || p.isTold(pod, later) {
		t.Errorf("ready, it is looked at again after %s, and need not be written", again)
	}
	p.write(&pod.Status, later)
	s := p.status(later)
	if !pod.Status.ContainerStatuses[0].Ready || s.Phase != agentapi.PhaseServing || s.Start.Result != agentapi.StartCold || s.Version != "1.6.38" || len(s.Arguments) != 2 {
		t.Errorf("its agent tells %+v", s)
	}
}

func TestAnotherImageIsAnotherContainerThatKeepsItsItems(t *testing.T) {
	pod, p := shardPod(), &runningPod{uid: "uid"}
	p.advance(pod, noon)
	now := noon.Add(time.Minute)
	p.write(&pod.Status, now)
	before := p.containerID()

	pod.Annotations[v1alpha1.AnnotationStop] = "token"
	if again := p.advance(pod, now); again != brings || p.status(now).AnnouncedStop != "" {
		t.Errorf("the agent knows of the announcement at once, or is looked at after %s", again)
	}
	now = now.Add(brings)
	if again := p.advance(pod, now); again != 0 || p.status(now).AnnouncedStop != "token" {
		t.Errorf("the agent tells %+v, and is looked at after %s", p.status(now), again)
	}

	pod.Spec.Containers[0].Image = "memcached:1.6.45"
	p.advance(pod, now)
	if p.containerID() == before || p.isReady(now) || p.isTold(pod, now) {
		t.Error("the container is the one before, or ready at once")
	}
	now = now.Add(starts)
	p.advance(pod, now)
	if s := p.status(now); s.Start.Result != agentapi.StartWarm || s.Start.Items != items || s.Version != "1.6.45" || s.AnnouncedStop != "" {
		t.Errorf("its agent tells %+v", s)
	}
	p.write(&pod.Status, now)
	if c := pod.Status.ContainerStatuses[0]; c.RestartCount != 1 || c.Image != "memcached:1.6.45" || !c.Ready {
		t.Errorf("it was written as %+v", c)
	}
}

func TestEachPodHasAnAddressOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for pod := 1; pod <= 70_000; pod++ {
		ip := loopback(pod)
		if seen[ip] {
			t.Fatalf("pod %d has the address %s of another", pod, ip)
		}
		seen[ip] = true
	}
}
