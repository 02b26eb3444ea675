package plan

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
)

func TestReportsAreReadAlsoBesideManyUnreachableAgents(t *testing.T) {
	m := &v1alpha1.Memcached{Spec: v1alpha1.MemcachedSpec{TLS: &v1alpha1.TLS{}}}
	obs := &Observation{Memcached: m, Now: time.Now()}
	since := metav1.Now()
	for i := range 2*secretsQueries + 1 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
		shardtest.MountTLS(pod, "cache-tls")
		s := shard.Observation{Active: pod, IsReady: true}
		if i < secretsQueries {
			s.Last.AgentUnreachableSince = &since
		}
		obs.Shards = append(obs.Shards, s)
	}
	if due := secretPods(obs); len(due) != 2*secretsQueries || due[len(due)-1].Name != fmt.Sprint(2*secretsQueries-1) {
		t.Errorf("%d agents are queried", len(due))
	}
}
