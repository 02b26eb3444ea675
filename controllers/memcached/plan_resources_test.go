package memcached

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/applycache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
)

func TestOnlyObjectsThatChangedAreWritten(t *testing.T) {
	obs := newObservation(1, "valid", [2]string{"absent", "absent"}, [2]string{"absent", "absent"}, [2]string{"none", "none"})
	obs.cached = applycache.Objects{}
	build, shards := resources.NewBuilder(obs.memcached, testOptions), []resources.Shard{{Revision: shardtest.Revision(t)}}
	for _, want := range build.Desired(shards) {
		o := resources.NewObject(want.Key.Kind)
		o.SetUID("o")
		o.SetResourceVersion("7")
		obs.objects[want.Key], obs.cached[want.Key] = object{o, ours}, applycache.NewObject(obs.memcached, want, o)
	}
	writes := func() []apply {
		p := planResources(obs, build, shards, false)
		if len(p.cached)+len(p.actions.Apply) != len(obs.cached) {
			t.Errorf("%d objects are up to date, and %d are written", len(p.cached), len(p.actions.Apply))
		}
		return p.actions.Apply
	}
	if got := writes(); len(got) > 0 {
		t.Errorf("all objects are up to date, and these are written: %v", got)
	}
	for key, have := range obs.objects {
		if delete(obs.objects, key); len(writes()) != 1 || writes()[0].Key != key || writes()[0].uid != "" {
			t.Errorf("%s doesn't exist, and these are written: %v", key, writes())
		}
		changed := resources.NewObject(key.Kind)
		changed.SetUID("o")
		changed.SetResourceVersion("8")
		obs.objects[key] = object{changed, ours}
		if got := writes(); len(got) != 1 || got[0].Key != key || got[0].uid != "o" {
			t.Errorf("%s has changed, and these are written: %v", key, got)
		}
		obs.objects[key] = have
	}
}
