package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestListThatIsTooLargeIsNotPublished(t *testing.T) {
	const size = 1000
	m := &v1alpha1.Memcached{}
	m.Namespace, m.Name = strings.Repeat("n", 63), "cache"
	m.Spec.Discovery.Enabled = true
	pod := &corev1.Pod{}
	pod.Name, pod.Annotations = "cache-0-abcde", map[string]string{annotations.Discovery: "1700000000\nhost|10.0.0.1|11211\n"}
	obs := &Observation{Memcached: m, Now: time.Unix(1_800_000_000, 0), Pods: map[string][]*corev1.Pod{"cache-0": {pod}}, Objects: map[resources.Key]Object{}}
	states := make([]shard.State, size)
	for ordinal := range size {
		name := resources.ShardName("cache", ordinal)
		service := &corev1.Service{}
		service.Spec.ClusterIPs = []string{"fd00::1", "10.100.100.100"}
		obs.Objects[resources.Key{Kind: resources.KindService, Name: name}] = Object{APIObject: service}
		obs.Names = append(obs.Names, name)
		states[ordinal].Name, states[ordinal].IsReady = name, true
	}
	p := planDiscovery(obs, states, nil)
	if len(p.Actions.Patch) != 0 || p.Status.Version != 1700000000 || p.Status.Size != 1 || !strings.Contains(p.Status.Message, "the list of 1000 shards has 98901 bytes") {
		t.Errorf("%d patches, status %+v", len(p.Actions.Patch), p.Status)
	}
	m.Namespace = strings.Repeat("n", 10)
	p = planDiscovery(obs, states, nil)
	if len(p.Actions.Patch) != 1 || p.Status.Size != size || strings.Contains(p.Status.Message, "bytes") || !strings.Contains(p.list, ".svc|10.100.100.100|11211 ") {
		t.Errorf("%d patches, status %+v, %d bytes", len(p.Actions.Patch), p.Status, len(p.list))
	}
}

func TestManyPodsGetTheListInBatches(t *testing.T) {
	m := &v1alpha1.Memcached{}
	m.Spec.Discovery.Enabled = true
	obs := &Observation{Memcached: m, Now: time.Unix(1_800_000_000, 0), Pods: map[string][]*corev1.Pod{}}
	for i := range 2*BatchSize + 7 {
		pod := &corev1.Pod{}
		pod.Name, pod.UID = fmt.Sprintf("pod-%03d", i), types.UID(fmt.Sprint(i))
		if i > 0 {
			pod.Annotations = map[string]string{annotations.Discovery: "1700000000\n|former|\n"}
		}
		obs.Pods[pod.Name] = []*corev1.Pod{pod}
	}
	patched := []PodPatch{{Pod: obs.Pods["pod-003"][0]}}
	p := planDiscovery(obs, nil, patched)
	if now := p.Actions.batch(nil); len(now.Patch) != BatchSize || len(now.Postponed) != BatchSize+6 {
		t.Errorf("%d patches now, %d later", len(now.Patch), len(now.Postponed))
	}
	if slices.ContainsFunc(p.Actions.Patch, func(patch PodPatch) bool { return patch.Pod.Name == "pod-003" }) {
		t.Error("a pod is patched twice")
	}
	if p.Status.Version != obs.Now.Unix() || !strings.Contains(p.Status.Message, "107 pods were created by operator 1.0") {
		t.Errorf("the status is %+v", p.Status)
	}
}
