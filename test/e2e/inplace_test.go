package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// share of the items that a restart in place is to keep.
const share = 0.99

// Every version is followed by every other and by itself once, on one pod.
func TestARestartOfTheContainerInPlaceKeepsTheItemsUpAndDownTheVersions(t *testing.T) {
	t.Parallel()
	const size = 100_000
	s := newSpace(t)
	order := tour(versions)
	s.apply("cache", small(1).WithVersion(order[0]))
	s.available("cache")
	set := s.written("cache", 0, size)
	uid := s.pods("cache")["cache-0"].UID
	have := size
	for i, version := range order[1:] {
		from := order[i]
		began := time.Now()
		status := s.changeImage("cache", 0, imageOf(version, i+1))
		took := time.Since(began)
		now, err := set.Count()
		s.must(err)
		t.Logf("%s → %s: %d of %d items kept, %s from patch to ready", from, version, now, have, took.Round(10*time.Millisecond))
		if status.Version != version || status.Start.Result != agentapi.StartWarm || float64(now) < share*float64(have) {
			t.Errorf("%s → %s: %d of %d items, the agent tells version %s, %+v", from, version, now, have, status.Version, status.Start)
		}
		if pod := s.pods("cache")["cache-0"]; pod.UID != uid {
			t.Fatalf("the pod is another one")
		}
		if have = now; have < size {
			s.must(set.Write()) // so that the next is measured on all
			have = size
		}
	}
}

// tour returns an order in which each of three versions is followed by each of
// them, itself too, exactly once.
func tour(v []string) []string {
	a, b, c := v[0], v[len(v)/2], v[len(v)-1]
	return []string{a, a, b, b, c, c, a, c, b, a}
}

// imageOf returns the image of a version under one of two names: the kubelet
// restarts a container when its image's name is another one, also for the same
// image. Step 0 is the operator's own name of it.
func imageOf(version string, i int) string {
	return []string{"docker.io/library/memcached:", "docker.io/memcached:"}[i%2] + version
}

func TestTheImagesOfTheTourChangeAtEachStep(t *testing.T) {
	order := tour([]string{"1", "2", "3"})
	seen := map[string]bool{}
	for i, version := range order[1:] {
		seen[order[i]+version] = true
		if imageOf(version, i+1) == imageOf(order[i], i) {
			t.Errorf("step %d changes nothing", i)
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d of 9 ordered pairs are in %v", len(seen), order)
	}
}

// changeImage does what a warm upgrade does: it announces the stop to the agent
// of a shard, waits until the agent knows, and changes the image of the live pod.
// It returns what the agent tells once the shard serves again.
func (s *space) changeImage(name string, ordinal int, image string) agentapi.Status {
	s.Helper()
	shard := cluster.ShardName(name, ordinal)
	pod := s.pods(name)[shard]
	before := lifeOf(pod)
	token := fmt.Sprintf("stop-%d", before.restarts)
	s.must(k.Annotate(s.ctx, client.ObjectKeyFromObject(&pod), v1alpha1.AnnotationStop, token))
	s.eventually("the agent knows of the stop", func(ctx context.Context) error {
		status, err := cluster.AgentStatus(ctx, pod)
		if err != nil {
			return err
		}
		if status.AnnouncedStop != token {
			return fmt.Errorf("it knows of %q", status.AnnouncedStop)
		}
		return nil
	})
	patch := fmt.Appendf(nil, `{"spec":{"containers":[{"name":"memcached","image":%q}]}}`, image)
	s.must(k.Patch(s.ctx, &pod, client.RawPatch("application/strategic-merge-patch+json", patch)))
	var status agentapi.Status
	s.eventually("the container runs "+image, func(ctx context.Context) error {
		pod := s.pods(name)[shard]
		if now := lifeOf(pod); now.restarts == before.restarts || !isReady(pod) {
			return fmt.Errorf("%d restarts, ready %t", now.restarts, isReady(pod))
		}
		var err error
		status, err = cluster.AgentStatus(ctx, pod)
		return err
	})
	s.address(name, ordinal) // answers again
	return status
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func TestTheRestartAnnotationRestartsMemcachedInPlaceWithItsItems(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")
	set := s.written("cache", 1, size)
	before := s.lives("cache")
	for _, token := range []string{"first", "second"} {
		shard, err := k.Restart(s.ctx, s.key("cache"), 1, token, soon)
		s.must(err)
		if shard.Start != v1alpha1.StartWarm || shard.ItemsBefore < size*99/100 || shard.Items < shard.ItemsBefore*99/100 {
			t.Errorf("after restart %s the status tells %+v", token, shard)
		}
		kept, err := set.Keep(share)
		s.must(err)
		s.event("cache", v1alpha1.EventShardKeptItems, "cache-1", fmt.Sprintf("%d of %d items", shard.Items, shard.ItemsBefore))
		t.Logf("restart %s: %d of %d items kept", token, kept, size)
	}
	s.untouched("cache", before)
	s.available("cache")
}
