package scale

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func shardPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "m00001-0-x", UID: "uid", Annotations: map[string]string{annotations.Arguments: `["-m","64"]`}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: containerName, Image: "memcached:1.6.38"}}},
	}
}

func TestChangedImageRestartsTheContainerWithItsItems(t *testing.T) {
	pod, p := shardPod(), &runningPod{uid: "uid"}
	if again := p.advance(pod, noon); again != StartDelay || p.isReady(noon) || p.status(noon).Phase == agentwire.PhaseServing {
		t.Errorf("a new pod is ready at once, or its next change is due after %s", again)
	}
	now := noon.Add(time.Minute)
	p.write(&pod.Status, now)
	before := p.containerID()

	pod.Annotations[annotations.Stop] = "token"
	if again := p.advance(pod, now); again != AnnotationDelay || p.status(now).AnnouncedStop != "" {
		t.Errorf("the agent reads the annotation at once, or after %s", again)
	}
	now = now.Add(AnnotationDelay)
	if again := p.advance(pod, now); again != 0 || p.status(now).AnnouncedStop != "token" {
		t.Errorf("the agent reports %+v, the next change is due after %s", p.status(now), again)
	}

	pod.Spec.Containers[0].Image = "memcached:1.6.45"
	p.advance(pod, now)
	if p.containerID() == before || p.isReady(now) || p.isReported(pod, now) {
		t.Error("the container is the previous one, or ready at once")
	}
	now = now.Add(StartDelay)
	p.advance(pod, now)
	if s := p.status(now); s.Start.Result != agentwire.StartWarm || s.Start.Items != items || s.Version != "1.6.45" || s.AnnouncedStop != "" {
		t.Errorf("its agent reports %+v", s)
	}
	p.write(&pod.Status, now)
	if c := pod.Status.ContainerStatuses[0]; c.RestartCount != 1 || c.Image != "memcached:1.6.45" || !c.Ready {
		t.Errorf("status %+v", c)
	}
}

func TestEachPodHasItsOwnAddress(t *testing.T) {
	seen := map[string]bool{}
	for pod := 1; pod <= 70_000; pod++ {
		ip := loopback(pod)
		if seen[ip] {
			t.Fatalf("pod %d has the address %s of another pod", pod, ip)
		}
		seen[ip] = true
	}
}
