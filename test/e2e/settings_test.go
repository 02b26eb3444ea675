package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	controller "github.com/memcached-operator/memcached-operator/controllers/memcached"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// resizing returns what the cluster resizes of running pods.
func (s *space) resizing() resources.Resizing {
	s.Helper()
	can, err := controller.Resizing(k.Set.Discovery())
	s.Must(err)
	return can
}

// small returns a spec of which any change of maxConnections and TLS is in place: without a memory limit of its own only
// where Kubernetes can resize the pods for it.
func (s *space) small(size int32) *memcachedac.MemcachedSpecApplyConfiguration {
	s.Helper()
	spec := suite.Small(size)
	if s.resizing() != resources.ResizeAll {
		spec.Resources.WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("190Mi")})
	}
	return spec
}

// One setting after the other is changed on the same shards.
func TestSettingsChangeInPlaceAndKeepItems(t *testing.T) {
	t.Parallel()
	const shards, size = 2, 20_000
	s := newSpace(t)
	spec := s.small(shards)
	s.Apply("cache", spec)
	s.Available("cache")
	sets := []*items.Set{s.Written("cache", 0, size), s.Written("cache", 1, size)}
	before := s.Lives("cache")
	check := s.checked("cache", shards)
	for _, change := range []struct {
		what string
		set  func(*memcachedac.MemcachedSpecApplyConfiguration)
		// restarts says that memcached is another process afterwards.
		restarts bool
		// arguments that memcached has then, beside each other.
		arguments string
		progress  string
	}{
		{"threads", func(spec *memcachedac.MemcachedSpecApplyConfiguration) { spec.WithThreads(2) }, true, "-t 2", "threads 4 → 2"},
		// for which the container gets more memory first
		{"maxConnections", func(spec *memcachedac.MemcachedSpecApplyConfiguration) { spec.WithMaxConnections(4096) }, true, "-c 4096", "maxConnections 1024 → 4096"},
		{"verbosity and hash algorithm", func(spec *memcachedac.MemcachedSpecApplyConfiguration) {
			spec.WithExtraArgs("-v", "-o", "hash_algorithm=murmur3")
		}, true, "-v -o hash_algorithm=murmur3", "extraArgs"},
		{"labels and annotations", func(spec *memcachedac.MemcachedSpecApplyConfiguration) {
			spec.WithPodMetadata(memcachedac.PodMetadata().WithLabels(map[string]string{"team": "a", "tier": "cache"}).WithAnnotations(map[string]string{"note": "b"}))
		}, false, "", "podMetadata"},
		{"a label and an annotation less", func(spec *memcachedac.MemcachedSpecApplyConfiguration) {
			spec.WithPodMetadata(memcachedac.PodMetadata().WithLabels(map[string]string{"tier": "cache"}))
		}, false, "", "podMetadata"},
		{"processor and memory", func(spec *memcachedac.MemcachedSpecApplyConfiguration) {
			spec.WithResources(memcachedac.ResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2m")}).
				WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("200Mi")}))
		}, false, "", "resources"},
	} {
		if change.progress == "resources" && s.resizing() == resources.ResizeNothing {
			s.Logf("Kubernetes resizes no pods")
			break
		}
		agents := s.agents("cache")
		h := s.Follow("cache")
		change.set(spec)
		s.Apply("cache", spec)
		m := s.Updated("cache")
		all := h.End()
		h.InTurn(all, "cache-0", "cache-1")
		h.Says(all.Progress(), fmt.Sprintf("%s: shard 1 of 2: %s", v1alpha1.ReasonUpdatingShard, change.progress))
		s.Untouched("cache", before)
		for name, agent := range s.agents("cache") {
			if agent.PID != agents[name].PID != change.restarts {
				t.Errorf("%s: memcached of %s was process %d and is %d", change.what, name, agents[name].PID, agent.PID)
			}
			if words := strings.Join(agent.Arguments, " "); !strings.Contains(words, change.arguments) {
				t.Errorf("%s: memcached of %s runs with %s", change.what, name, words)
			}
		}
		for ordinal := range shards {
			shard := s.Shard(m, ordinal)
			s.Holds(sets[ordinal])
			// The checker writes and deletes in between.
			if change.restarts && (shard.Start != v1alpha1.StartWarm || float64(shard.Items) < share*float64(shard.ItemsBefore)) {
				t.Errorf("%s: the status of shard %d is %+v", change.what, ordinal, shard)
			}
		}
	}
	for name, pod := range s.Pods("cache") {
		if _, ok := pod.Labels["team"]; ok || pod.Labels["tier"] != "cache" || pod.Labels[v1alpha1.LabelShard] == "" || pod.Annotations["note"] != "" {
			t.Errorf("pod of %s has labels %v, annotations %v", name, pod.Labels, slices.Sorted(maps.Keys(pod.Annotations)))
		}
		status := pod.Status.ContainerStatuses[0].Resources
		if s.resizing() != resources.ResizeNothing && (status == nil || status.Requests.Cpu().MilliValue() != 2 || status.Limits.Memory().Value() != 200<<20) {
			t.Errorf("the resources in effect in the pod of %s are %+v", name, status)
		}
	}
	check()
	s.NoPreflightPods()
}

func TestVersionAndSettingsTogetherNeedOneRestart(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := newSpace(t)
	s.Apply("cache", s.small(1).WithVersion(versions[0]))
	s.Available("cache")
	kept := s.Written("cache", 0, size)
	before := s.Lives("cache")
	to := versions[len(versions)-1]
	h := s.Follow("cache")
	s.Apply("cache", s.small(1).WithVersion(to).WithThreads(2).WithMaxConnections(2048).WithExtraArgs("-v").WithPodMetadata(memcachedac.PodMetadata().WithLabels(map[string]string{"tier": "cache"})))
	m := s.Updated("cache")
	s.Restarted("cache", before, map[string]int32{"cache-0": 1})
	all := h.End()
	h.InTurn(all, "cache-0")
	h.Says(all.Progress(), fmt.Sprintf("%s: shard 1 of 1: %s → %s, maxConnections 1024 → 2048, threads 4 → 2", v1alpha1.ReasonUpdatingShard, versions[0], to))
	if shard := s.Shard(m, 0); shard.Version != to || shard.Start != v1alpha1.StartWarm {
		t.Errorf("the shard's status is %+v", shard)
	}
	s.Holds(kept)
	agent := s.agents("cache")["cache-0"]
	if words := strings.Join(agent.Arguments, " "); agent.ArgumentsError != "" || !strings.Contains(words, "-c 2048 -t 2") || !strings.Contains(words, "-v") {
		t.Errorf("memcached runs with %s, %s", words, agent.ArgumentsError)
	}
	if starts := strings.Count(s.memcachedLog(s.Pods("cache")["cache-0"]), "Started memcached"); starts != 1 {
		t.Errorf("the new container started memcached %d times", starts)
	}
	if pod := s.Pods("cache")["cache-0"]; pod.Labels["tier"] != "cache" {
		t.Errorf("the pod's labels are %v", pod.Labels)
	}
}

// agents returns the statuses of a Memcached's agents, by shard.
func (s *space) agents(name string) map[string]agentwire.Status {
	s.Helper()
	all := map[string]agentwire.Status{}
	for shard, pod := range s.Pods(name) {
		status, err := cluster.AgentStatus(s.Ctx, pod)
		s.Must(err)
		all[shard] = status
	}
	return all
}

// log returns what the memcached container of a pod wrote since its last start.
func (s *space) memcachedLog(pod corev1.Pod) string {
	s.Helper()
	text, err := k.Set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "memcached"}).DoRaw(s.Ctx)
	s.Must(err)
	return string(text)
}
