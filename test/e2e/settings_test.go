package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	controller "github.com/memcached-operator/memcached-operator/controllers/memcached"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentclient "github.com/memcached-operator/memcached-operator/internal/agent/client"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
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
func (s *space) small(size int32) v1beta1.MemcachedSpec {
	s.Helper()
	spec := suite.Small(size)
	if s.resizing() != resources.ResizeAll {
		spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("190Mi")}
	}
	return spec
}

// One setting after the other is changed on the same shards. Then the network policy is disabled, one is restarted, version and threads change
// together, and the version changes back. Clients read, write and delete all the time.
func TestSettingsChangeInPlaceAndKeepItems(t *testing.T) {
	const shards, size = 2, 20_000
	s := newSpace(t)
	spec := s.small(shards)
	s.Serve("cache", spec)
	sets := []*items.Set{s.Written("cache", 0, size), s.Written("cache", 1, size)}
	before := s.Lives("cache")
	check := s.checked("cache", shards, share)
	for _, change := range []struct {
		what string
		set  suite.Change
		// restarts says that memcached is another process afterwards.
		restarts bool
		// arguments that memcached has then, beside each other.
		arguments string
		progress  string
	}{
		{"threads", suite.Threads(2), true, "-t 2", "config.threads 4 → 2"},
		// for which the container gets more memory first
		{"maxConnections", func(spec *v1beta1.MemcachedSpec) { spec.Config.MaxConnections = new(int32(4096)) }, true, "-c 4096", "config.maxConnections 1024 → 4096"},
		{"verbosity and hash algorithm", func(spec *v1beta1.MemcachedSpec) {
			spec.Config.ExtraArgs = []string{"-v", "-o", "hash_algorithm=murmur3"}
		}, true, "-v -o hash_algorithm=murmur3", "config.extraArgs"},
		{"labels and annotations", func(spec *v1beta1.MemcachedSpec) {
			spec.Pod.Metadata = v1beta1.Metadata{Labels: map[string]string{"team": "a", "tier": "cache"}, Annotations: map[string]string{"note": "b"}}
		}, false, "", "pod.metadata"},
		{"a label and an annotation less", func(spec *v1beta1.MemcachedSpec) {
			spec.Pod.Metadata = v1beta1.Metadata{Labels: map[string]string{"tier": "cache"}}
		}, false, "", "pod.metadata"},
		{"processor and memory", func(spec *v1beta1.MemcachedSpec) {
			spec.Resources = &v1beta1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2m")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("200Mi")},
			}
		}, false, "", "resources"},
	} {
		if change.progress == "resources" && s.resizing() == resources.ResizeNothing {
			s.Logf("Kubernetes resizes no pods")
			break
		}
		agents := s.agents("cache")
		h := s.Follow("cache")
		change.set(&spec)
		s.Apply("cache", spec)
		m := s.Updated("cache")
		all := h.End()
		h.InTurn(all, "cache-0", "cache-1")
		h.Says(all.Progress(), fmt.Sprintf("%s: shard 1 of 2: %s", v1beta1.ReasonUpdatingShard, change.progress))
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
			if change.restarts && (shard.StartResult != v1beta1.StartWarm || float64(shard.Items) < share*float64(shard.ItemsBefore)) {
				t.Errorf("%s: the status of shard %d is %+v", change.what, ordinal, shard)
			}
		}
	}
	for name, pod := range s.Pods("cache") {
		if _, ok := pod.Labels["team"]; ok || pod.Labels["tier"] != "cache" || pod.Labels[v1beta1.LabelShard] == "" || pod.Annotations["note"] != "" {
			t.Errorf("pod of %s has labels %v, annotations %v", name, pod.Labels, slices.Sorted(maps.Keys(pod.Annotations)))
		}
		status := pod.Status.ContainerStatuses[0].Resources
		if s.resizing() != resources.ResizeNothing && (status == nil || status.Requests.Cpu().MilliValue() != 2 || status.Limits.Memory().Value() != 200<<20) {
			t.Errorf("the resources in effect in the pod of %s are %+v", name, status)
		}
	}

	spec.Access.NetworkPolicy.Mode = v1beta1.NetworkPolicyDisabled
	s.Apply("cache", spec)
	s.Gone(&networkingv1.NetworkPolicy{}, "cache")
	s.Untouched("cache", before)

	shard, err := k.Restart(s.Ctx, s.Key("cache"), 1, "now")
	s.Must(err)
	if shard.StartResult != v1beta1.StartWarm || float64(shard.Items) < share*float64(shard.ItemsBefore) {
		t.Errorf("after a restart by annotation the shard's status is %+v", shard)
	}
	s.Event("cache", v1beta1.EventShardKeptItems, "cache-1", fmt.Sprintf("%d of %d items", shard.Items, shard.ItemsBefore))
	s.Untouched("cache", before)

	spec.Version, spec.Config.Threads = versions[0], new(int32(3))
	s.Apply("cache", spec)
	s.Updated("cache")
	s.Restarted("cache", before, map[string]int32{"cache-0": 1, "cache-1": 1})
	for name, agent := range s.agents("cache") {
		if words := strings.Join(agent.Arguments, " "); agent.Version != versions[0] || !strings.Contains(words, "-t 3") {
			t.Errorf("memcached %s of %s runs with %s", agent.Version, name, words)
		}
		if starts := strings.Count(s.memcachedLog(s.Pods("cache")[name]), "Started memcached"); starts != 1 {
			t.Errorf("for a version and a setting together, the new container of %s started memcached %d times", name, starts)
		}
	}
	spec.Version = defaultVersion
	s.Apply("cache", spec)
	s.Updated("cache")
	s.Restarted("cache", before, map[string]int32{"cache-0": 2, "cache-1": 2})
	for _, set := range sets {
		s.Holds(set)
	}
	if r := check(); r.Unanswered+r.Failed == 0 {
		t.Error("the clients saw no restart")
	}
	s.NoPreflightPods()
}

// agents returns the statuses of a Memcached's agents, by shard.
func (s *space) agents(name string) map[string]agentwire.Status {
	s.Helper()
	all := map[string]agentwire.Status{}
	for shard, pod := range s.Pods(name) {
		s.Eventually("the status of the agent of "+shard, func(ctx context.Context) (err error) { // a busy node exceeds its timeout
			all[shard], err = agentclient.HTTP{}.Status(ctx, pod.Status.PodIP)
			return err
		})
	}
	return all
}

// memcachedLog returns what the memcached container of a pod wrote since its last start.
func (s *space) memcachedLog(pod corev1.Pod) string {
	s.Helper()
	text, err := k.Set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "memcached"}).DoRaw(s.Ctx)
	s.Must(err)
	return string(text)
}
