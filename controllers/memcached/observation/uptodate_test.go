package observation

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

func TestObjectIsCurrentForOneVersionAndOneDesiredState(t *testing.T) {
	spec := v1beta1.MemcachedSpec{
		Size: ptr.To[int32](1), Memory: ptr.To(resource.MustParse("64Mi")), Config: v1beta1.MemcachedConfig{MaxItemSize: ptr.To(resource.MustParse("1Mi")),
			MaxConnections: ptr.To[int32](1024), Threads: ptr.To[int32](4)},
	}
	revision := resources.NewPodRevision(&spec, resources.Image{Reference: "memcached:1.6.45"})
	set := resources.Key{Kind: resources.KindReplicaSet, Name: "cache-0"}
	service := resources.Key{Kind: resources.KindService, Name: "cache-0"}
	type state struct {
		memcached *v1beta1.Memcached
		shard     resources.Shard
		have      metav1.ObjectMeta
	}
	for name, c := range map[string]struct {
		change func(s *state)
		// set and service are whether the entries of the ReplicaSet and the Service are valid.
		set, service bool
	}{
		"no change":          {func(*state) {}, true, true},
		"another status":     {func(s *state) { s.have.ResourceVersion = "8" }, true, true},
		"another spec":       {func(s *state) { s.have.Generation = 2 }, false, false},
		"no generation":      {func(s *state) { s.have.Generation = 0 }, false, false},
		"another label":      {func(s *state) { s.have.Labels = map[string]string{"team": "shop"} }, false, false},
		"another annotation": {func(s *state) { s.have.Annotations = map[string]string{"team": "shop"} }, false, false},
		"another owner":      {func(s *state) { s.have.OwnerReferences = []metav1.OwnerReference{{UID: "other"}} }, false, false},
		"another manager":    {func(s *state) { s.have.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other"}} }, false, false},
		"another object":     {func(s *state) { s.have.UID = "other" }, false, false},
		"another Memcached":  {func(s *state) { s.memcached.UID = "other" }, false, false},
		"another generation": {func(s *state) { s.memcached.Generation++ }, false, false},
		"a second pod":       {func(s *state) { s.shard.Surge = true }, false, true},
		"a node to avoid":    {func(s *state) { s.shard.AvoidNode = "node-1" }, false, true},
		"a list of shards":   {func(s *state) { s.shard.Discovery = "1\n" }, false, true},
		"a record":           {func(s *state) { s.shard.Annotations = map[string]string{"update": "1"} }, false, true},
		"another revision": {func(s *state) {
			s.shard.Revision = resources.NewPodRevision(&spec, resources.Image{Reference: "memcached:1.6.44"})
		}, false, true},
		"a label of the Memcached": {func(s *state) { s.memcached.Labels = map[string]string{"team": "shop"} }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			entries := func(change func(*state)) UpToDate {
				s := &state{memcached: &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", UID: "m", Generation: 3},
					Spec: v1beta1.MemcachedSpec{Size: ptr.To[int32](1)}},
					shard: resources.Shard{Revision: revision}, have: metav1.ObjectMeta{UID: "o", ResourceVersion: "7", Generation: 1}}
				change(s)
				all := UpToDate{}
				for _, want := range resources.NewBuilder(s.memcached, resources.Options{}).Desired([]resources.Shard{s.shard}) {
					all[want.Key] = NewVersion(s.memcached, want, &s.have)
				}
				return all
			}
			before, after := entries(func(*state) {}), entries(c.change)
			if got := before[set] == after[set]; got != c.set {
				t.Errorf("the ReplicaSet is current: %t", got)
			}
			if got := before[service] == after[service]; got != c.service {
				t.Errorf("the Service is current: %t", got)
			}
		})
	}
}

func TestObjectOfAKindWithoutGenerationsIsCurrentForOneResourceVersion(t *testing.T) {
	m, keeps, want := &v1beta1.Memcached{}, resources.Desired{}, resources.Desired{MaxUnavailable: 1}
	if NewVersion(m, want, &metav1.ObjectMeta{ResourceVersion: "7"}) == NewVersion(m, want, &metav1.ObjectMeta{ResourceVersion: "8"}) {
		t.Error("another version is current")
	}
	if NewVersion(m, want, &metav1.ObjectMeta{ResourceVersion: "7"}) == NewVersion(m, keeps, &metav1.ObjectMeta{ResourceVersion: "7"}) {
		t.Error("a budget that allows evictions is current when it must not")
	}
}
