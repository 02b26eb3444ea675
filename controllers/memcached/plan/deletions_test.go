package plan_test

import (
	"slices"
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

func TestServicesOfAShardAreDeletedBeforeItsPod(t *testing.T) {
	obs := plantest.Observation(0, "valid", [2]string{"ours", "ours"}, [2]string{"ours", "ours"}, [2]string{"ready", "ready"})
	obs.Memcached.Spec.Access.External.Mode = v1beta1.ExternalLoadBalancer
	for ordinal, state := range []string{"ours", "ours", "foreign"} {
		plantest.AddObject(obs, resources.ExternalKey(resources.ShardName("cache", ordinal)), state)
	}
	deleted := func() (all []string) {
		for _, o := range slices.Concat(plantest.Plan(obs).Actions.Delete, plantest.Plan(obs).Actions.ScaleIn) {
			all = append(all, resources.KeyOf(o).String())
		}
		return all
	}
	want := []string{
		"Service cache-1-ext", "Service cache-1", "ReplicaSet cache-1",
		"Service cache-0-ext", "Service cache-0", "ReplicaSet cache-0",
	}
	if got := deleted(); !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
	*obs.Memcached.Spec.Size, obs.Memcached.Spec.Access.External.Mode = 1, v1beta1.ExternalDisabled
	want = []string{"Service cache-1-ext", "Service cache-0-ext", "Service cache-1", "ReplicaSet cache-1"}
	if got := deleted(); !slices.Equal(got, want) {
		t.Errorf("with type ClusterIP, the order is %q, want %q", got, want)
	}
	plantest.AddObject(obs, resources.ExternalKey("cache-0"), "terminating")
	if got := deleted(); slices.Contains(got, "Service cache-0-ext") {
		t.Errorf("a Service that is being deleted is deleted again: %q", got)
	}
	delete(obs.Objects, resources.ExternalKey("cache-1"))
	if got := deleted(); !slices.Equal(got, []string{"Service cache-1", "ReplicaSet cache-1"}) {
		t.Errorf("without such Services, these are deleted: %q", got)
	}
}
