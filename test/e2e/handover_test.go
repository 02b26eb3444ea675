package e2e

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// handedShare is the share of the items that a shard keeps in another pod.
const handedShare = 0.999

// withoutHandover has empty replacements.
var withoutHandover = suite.Handover(v1beta1.HandoverDisabled)

func TestEvictedAndDeletedPodsHandOverTheirItems(t *testing.T) {
	const (
		shards = 3
		size   = 10_000
	)
	s := newSpace(t)
	s.Serve("cache", suite.Small(shards))
	sets := []*items.Set{s.Written("cache", 0, size), s.Written("cache", 1, size)}
	check, keysStay := s.checked("cache", shards, 1), s.keysStay("cache")
	for _, step := range []struct {
		what     string
		ordinals []int
		remove   func(pod corev1.Pod) error
	}{
		{"eviction", []int{0}, func(pod corev1.Pod) error {
			return k.Set.PolicyV1().Evictions(pod.Namespace).Evict(s.Ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
		}},
		{"deletion of two pods at once", []int{0, 1}, func(pod corev1.Pod) error { return k.Delete(s.Ctx, &pod) }},
	} {
		before := s.Pods("cache")
		for _, ordinal := range step.ordinals {
			s.Must(step.remove(before[cluster.ShardName("cache", ordinal)]))
		}
		for _, ordinal := range step.ordinals {
			name := cluster.ShardName("cache", ordinal)
			pod := before[name]
			m := s.Replaced("cache", ordinal, pod)
			s.handedOver(step.what, m, ordinal, sets[ordinal], size)
			s.Event("cache", v1beta1.EventShardHandedOver, name, s.Shard(m, ordinal).PodName)
			s.Gone(&pod, pod.Name)
		}
		keysStay(step.what)
	}
	check()
}

// The copy of all items takes 24 s at the rate that spares clients, and the kubelet kills the pod before. The time is short: a
// machine that stalls can use it up. Each attempt has more; two thirds of it, which the copy has, stay below 24 s.
func TestPodThatIsSoonKilledHandsOverTheItemsUsedLast(t *testing.T) {
	const size, last = 1_200_000, 10_000
	s := newSpace(t)
	s.Serve("cache", suite.Small(1, suite.Memory("256Mi")))
	for attempt := range int64(3) {
		s.Must(s.Items("cache", 0, size).Fill())
		set, pod := s.Written("cache", 0, last), s.Pods("cache")["cache-0"]
		s.Must(k.Delete(s.Ctx, &pod, client.GracePeriodSeconds(20+7*attempt)))
		m := s.Replaced("cache", 0, pod)
		s.Logf("of %d items, %d are handed over: %s", size, s.Shard(m, 0).Items, s.Shard(m, 0).StartResult)
		if s.Shard(m, 0).StartResult == v1beta1.StartHandedOver || attempt == 2 {
			s.handedOver("deletion", m, 0, set, last)
			return
		}
	}
}

func TestChangesThatReplaceShardsHandOverTheirItems(t *testing.T) {
	const size = 10_000
	s := newSpace(t)
	s.Serve("cache", suite.Small(1))
	set := s.Written("cache", 0, size)
	check := s.checked("cache", 1, 1)
	s.Must(k.Create(s.Ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "cache"}}))
	smaller := suite.Small(1, suite.Memory("96Mi"))
	smaller.Config.MaxItemSize = new(resource.MustParse("4Mi"))
	smaller.Pod.ServiceAccountName = "cache"
	smaller.Pod.SecurityContext = v1beta1.SecurityContext{RunAsUser: new(int64(1000)), RunAsGroup: new(int64(2000))}
	for _, change := range []struct {
		what string
		spec v1beta1.MemcachedSpec
	}{
		{"memory 64Mi to 256Mi", suite.Small(1, suite.Memory("256Mi"))},
		{"memory 256Mi to 96Mi, maxItemSize 1Mi to 4Mi, user and service account", smaller},
	} {
		before := s.Pods("cache")["cache-0"]
		h := s.Follow("cache")
		s.Apply("cache", change.spec)
		m := s.Updated("cache")
		s.Gone(&before, before.Name)
		h.NeverTwo(h.End())
		if s.Shard(m, 0).PodName == before.Name {
			t.Errorf("%s: the pod is the same", change.what)
		}
		s.handedOver(change.what, m, 0, set, size)
	}
	pod := s.Pods("cache")["cache-0"]
	if security := pod.Spec.SecurityContext; pod.Spec.ServiceAccountName != "cache" || *security.RunAsUser != 1000 || *security.RunAsGroup != 2000 || !*security.RunAsNonRoot {
		t.Errorf("the pod has the service account %s and runs as %+v", pod.Spec.ServiceAccountName, security)
	}
	check()
	s.NoPreflightPods()
}

// handedOver checks that a shard in another pod has its items.
func (s *space) handedOver(what string, m *v1beta1.Memcached, ordinal int, set *items.Set, size int) {
	s.Helper()
	shard := s.Shard(m, ordinal)
	if shard.StartResult != v1beta1.StartHandedOver || float64(shard.Items) < handedShare*float64(size) {
		s.Errorf("%s: the status of shard %d is %+v", what, ordinal, shard)
	}
	s.Address(m.Name, ordinal)
	_, err := set.Keep(handedShare)
	s.Must(err)
}
