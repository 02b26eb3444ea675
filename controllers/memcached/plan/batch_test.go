package plan

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestManyPodsBecomeReadyInBatches(t *testing.T) {
	obs := &Observation{Memcached: &v1alpha1.Memcached{}, Now: time.Unix(1_800_000_000, 0), Pods: map[string][]*corev1.Pod{}}
	deadline := metav1.NewTime(obs.Now.Add(time.Hour))
	for i := range BatchSize + 7 {
		pod := &corev1.Pod{}
		pod.Name, pod.Annotations = fmt.Sprintf("pod-%d", i), map[string]string{annotations.HoldUntil: deadline.UTC().Format(time.RFC3339)}
		obs.Names = append(obs.Names, pod.Name)
		obs.Pods[pod.Name] = []*corev1.Pod{pod}
	}
	finished := &v1alpha1.BootstrapStatus{Phase: v1alpha1.TransferComplete, Deadline: deadline}
	if now := releaseReadiness(obs, finished).batch(nil); len(now.Patch) != BatchSize || len(now.Postponed) != 7 {
		t.Errorf("%d patches now, %d later", len(now.Patch), len(now.Postponed))
	}
}
