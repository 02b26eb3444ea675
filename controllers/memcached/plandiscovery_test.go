package memcached

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
	obs := &observation{memcached: m, now: time.Unix(1_800_000_000, 0), pods: map[string][]*corev1.Pod{"cache-0": {pod}}, objects: map[resources.Key]object{}}
	states := make([]shard.State, size)
	for ordinal := range size {
		name := resources.ShardName("cache", ordinal)
		service := &corev1.Service{}
		service.Spec.ClusterIPs = []string{"fd00::1", "10.100.100.100"}
		obs.objects[resources.Key{Kind: resources.KindService, Name: name}] = object{APIObject: service}
		obs.names = append(obs.names, name)
		states[ordinal].Name, states[ordinal].IsReady = name, true
	}
	p := planDiscovery(obs, states, nil)
	if len(p.actions.Patch) != 0 || p.status.Version != 1700000000 || p.status.Size != 1 || !strings.Contains(p.status.Message, "the list of 1000 shards has 98901 bytes") {
		t.Errorf("%d patches, status %+v", len(p.actions.Patch), p.status)
	}
	m.Namespace = strings.Repeat("n", 10)
	p = planDiscovery(obs, states, nil)
	if len(p.actions.Patch) != 1 || p.status.Size != size || strings.Contains(p.status.Message, "bytes") || !strings.Contains(p.list, ".svc|10.100.100.100|11211 ") {
		t.Errorf("%d patches, status %+v, %d bytes", len(p.actions.Patch), p.status, len(p.list))
	}
}

func TestManyPodsGetTheListInBatches(t *testing.T) {
	m := &v1alpha1.Memcached{}
	m.Spec.Discovery.Enabled = true
	obs := &observation{memcached: m, now: time.Unix(1_800_000_000, 0), pods: map[string][]*corev1.Pod{}}
	for i := range 2*batchSize + 7 {
		pod := &corev1.Pod{}
		pod.Name, pod.UID = fmt.Sprintf("pod-%03d", i), types.UID(fmt.Sprint(i))
		if i > 0 {
			pod.Annotations = map[string]string{annotations.Discovery: "1700000000\n|former|\n"}
		}
		obs.pods[pod.Name] = []*corev1.Pod{pod}
	}
	patched := []podPatch{{pod: obs.pods["pod-003"][0]}}
	p := planDiscovery(obs, nil, patched)
	if len(p.actions.Patch) != batchSize || len(p.actions.Postponed) != batchSize+6 {
		t.Errorf("%d patches now, %d later", len(p.actions.Patch), len(p.actions.Postponed))
	}
	if slices.ContainsFunc(p.actions.Patch, func(patch podPatch) bool { return patch.pod.Name == "pod-003" }) {
		t.Error("a pod is patched twice")
	}
	if p.status.Version != obs.now.Unix() || !strings.Contains(p.status.Message, "107 pods were created by operator 1.0") {
		t.Errorf("the status is %+v", p.status)
	}
}
