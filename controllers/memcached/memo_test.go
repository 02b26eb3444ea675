package memcached

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// What is remembered is of one version of an object and of one wish.
func TestAnObjectIsComparedAgainWhenItOrTheWishIsAnother(t *testing.T) {
	spec := smallWorld(1, "good", [2]string{}, [2]string{}, [2]string{}).memcached.Spec
	asked := manifests.Ask(&spec, manifests.Image{Reference: "memcached:1.6.45"})
	set := manifests.Key{Kind: manifests.KindReplicaSet, Name: "cache-0"}
	service := manifests.Key{Kind: manifests.KindService, Name: "cache-0"}
	type state struct {
		memcached *v1alpha1.Memcached
		shard     manifests.Shard
		uid       types.UID
		version   string
		lacks     bool
	}
	for name, c := range map[string]struct {
		change func(s *state)
		// of what is remembered the ReplicaSet's and the Service's still count
		set, service bool
	}{
		"nothing changed":            {func(*state) {}, true, true},
		"another version":            {func(s *state) { s.version = "8" }, false, false},
		"another object":             {func(s *state) { s.uid = "other" }, false, false},
		"no object":                  {func(s *state) { s.lacks = true }, false, false},
		"another Memcached":          {func(s *state) { s.memcached.UID = "other" }, false, false},
		"another generation":         {func(s *state) { s.memcached.Generation++ }, false, false},
		"a second pod":               {func(s *state) { s.shard.Surge = true }, false, true},
		"a hold":                     {func(s *state) { s.shard.HoldUntil = "later" }, false, true},
		"a note":                     {func(s *state) { s.shard.Annotations = map[string]string{"step": "1"} }, false, true},
		"something else is asked":    {func(s *state) { s.shard.Asked = manifests.Ask(&spec, manifests.Image{Reference: "memcached:1.6.44"}) }, false, true},
		"a label of the Memcached's": {func(s *state) { s.memcached.Labels = map[string]string{"team": "shop"} }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(change func(*state)) (map[manifests.Key]wish, map[manifests.Key]object) {
				s := &state{memcached: &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", UID: "m", Generation: 3}},
					shard: manifests.Shard{Asked: asked}, uid: "o", version: "7"}
				change(s)
				objects := map[manifests.Key]object{}
				for _, key := range manifests.Keys("cache", 1) {
					if !s.lacks {
						objects[key] = object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: s.uid, ResourceVersion: s.version}}, ours}
					}
				}
				return wishesOf(s.memcached, []manifests.Shard{s.shard}), objects
			}
			found := finding{}
			wishes, objects := at(func(*state) {})
			for key, o := range objects {
				found[key] = fulfilled{o.GetUID(), o.GetResourceVersion(), wishes[key]}
			}
			wishes, objects = at(c.change)
			has := func(key manifests.Key) bool {
				o, exists := objects[key]
				return exists && found.has(key, o, wishes)
			}
			if has(set) != c.set || has(service) != c.service || found.covers(wishes, objects) != (c.set && c.service) {
				t.Errorf("the ReplicaSet %t, the Service %t, all %t", has(set), has(service), found.covers(wishes, objects))
			}
		})
	}
}

// It does not grow with what there was.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 3")
	m := w.settle("cache")
	name := client.ObjectKeyFromObject(m)
	if n, want := len(w.reconciler.memo.of(name).found), len(manifests.Keys("cache", 3)); n != want {
		t.Fatalf("%d objects are remembered, want %d", n, want)
	}
	w.change("cache", func(m *v1alpha1.Memcached) { *m.Spec.Size = 1 })
	w.settle("cache")
	if n, want := len(w.reconciler.memo.of(name).found), len(manifests.Keys("cache", 1)); n != want {
		t.Errorf("scaled in, %d objects are remembered, want %d", n, want)
	}
	w.must(admin.Delete(w.ctx, m))
	_, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: name})
	w.must(err)
	if _, ok := w.reconciler.memo.known[name]; ok {
		t.Error("what was found of a Memcached that is gone is remembered")
	}
}

// A status that is computed from what the operator itself has overwritten is refused:
// it is not worth a reconcile.
func TestAReconcileWaitsForTheCacheToShowWhatWasWritten(t *testing.T) {
	w := newWorld(t)
	now := testclock.NewFakePassiveClock(time.Now())
	w.reconciler.Clock = now
	old := w.create("cache", "size: 1")
	w.reconcile("cache")
	lags := &lagging{Client: w.reconciler.Client, memcached: old}
	w.reconciler.Client = lags
	before := w.writes.Load()
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(old)}
	result, err := w.reconciler.Reconcile(w.ctx, request)
	if w.must(err); w.writes.Load() != before || result.RequeueAfter != lookAtOnce || lags.lists != 0 {
		t.Errorf("%d writes and %d lists, and again after %s", w.writes.Load()-before, lags.lists, result.RequeueAfter)
	}
	now.SetTime(now.Now().Add(hears)) // an etcd that was restored has it so for good
	if _, err = w.reconciler.Reconcile(w.ctx, request); err != nil || lags.lists == 0 {
		t.Errorf("five seconds later nothing is looked at, error %v", err)
	}
}

// lagging reads a Memcached as it was.
type lagging struct {
	client.Client
	memcached *v1alpha1.Memcached
	lists     int
}

// Get implements client.Reader.
func (l *lagging) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if m, ok := o.(*v1alpha1.Memcached); ok {
		l.memcached.DeepCopyInto(m)
		return nil
	}
	return l.Client.Get(ctx, key, o, options...)
}

// List implements client.Reader.
func (l *lagging) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.lists++
	return l.Client.List(ctx, list, options...)
}
