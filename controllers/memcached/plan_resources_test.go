package memcached

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/applycache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
)

func TestAllObjectsAreCurrentOnlyIfEachIs(t *testing.T) {
	obs := newObservation(1, "valid", [2]string{"absent", "absent"}, [2]string{"absent", "absent"}, [2]string{"none", "none"})
	hashes := applycache.Hashes(obs.memcached, []resources.Shard{{Revision: shardtest.Revision(t)}})
	obs.cached = applycache.Objects{}
	for key, hash := range hashes {
		o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: key.Name, UID: "o", ResourceVersion: "7"}}
		obs.objects[key], obs.cached[key] = object{o, ours}, applycache.NewObject(o, hash)
	}
	if !allCurrent(obs, hashes) {
		t.Error("all objects are current")
	}
	keys := resources.Keys("cache", 1)
	if len(keys) != len(hashes) || slices.ContainsFunc(keys, func(k resources.Key) bool { _, ok := hashes[k]; return !ok }) {
		t.Errorf("%d hashes for the objects %v", len(hashes), keys)
	}
	for _, key := range keys {
		have := obs.objects[key]
		if delete(obs.objects, key); allCurrent(obs, hashes) {
			t.Errorf("%s doesn't exist", key)
		}
		obs.objects[key] = object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: key.Name, UID: "o", ResourceVersion: "8"}}, ours}
		if allCurrent(obs, hashes) {
			t.Errorf("%s has changed", key)
		}
		obs.objects[key] = have
	}
}
