package memcached

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

const (
	oldDefault = "docker.io/library/memcached:1.6.38"
	newDefault = "docker.io/library/memcached:1.6.45"
)

// fleet is several clusters in one namespace with one operator.
type fleet struct {
	*testEnv
	clusters []*fakeCluster
	// lists is how often the operator listed all Memcacheds.
	lists int
}

// newFleet returns a fleet with the old default image.
func newFleet(t *testing.T, names ...string) *fleet {
	t.Helper()
	first := newCluster(t, names[0], "size: 2")
	f := &fleet{testEnv: first.testEnv, clusters: []*fakeCluster{first}}
	for _, name := range names[1:] {
		f.add(name)
	}
	f.reconciler.Options.DefaultImage = oldDefault
	f.reconciler.Client = countLists{f.reconciler.Client, &f.lists}
	for _, c := range f.clusters {
		c.converge()
	}
	if f.reconciler.Options.DefaultImage = newDefault; f.lists != 0 {
		t.Errorf("in steady state the operator listed all Memcacheds %d times", f.lists)
	}
	return f
}

func (f *fleet) add(name string) *fakeCluster {
	f.Helper()
	first := f.clusters[0]
	c := &fakeCluster{testEnv: first.testEnv, memcached: name, pods: map[types.UID]*fakePod{}, clock: first.clock, idleRounds: 2}
	c.create(name, "size: 2")
	f.clusters = append(f.clusters, c)
	return c
}

// step reconciles all, the last one first, and advances everything by a second.
func (f *fleet) step() {
	f.Helper()
	for i := len(f.clusters) - 1; i >= 0; i-- {
		c := f.clusters[i]
		_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: f.namespace, Name: c.memcached}})
		f.must(err)
		c.tick()
	}
	f.clusters[0].clock.Step(time.Second)
}

// countLists counts lists of Memcacheds.
type countLists struct {
	client.Client
	lists *int
}

// List implements client.Reader.
func (c countLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.MemcachedList); ok {
		*c.lists++
	}
	return c.Client.List(ctx, list, options...)
}

func TestMemcachedsFollowTheDefaultImageOneAfterTheOther(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	var order []string
	has := map[string]bool{}
	for i := 0; len(order) < 3 || f.get(order[2]).Status.Update != nil; i++ {
		if i == 150 {
			t.Fatalf("after %d seconds only %v have followed", i, order)
		}
		f.step()
		updating := 0
		for _, c := range f.clusters {
			m := f.get(c.memcached)
			if m.Status.Update != nil {
				updating++
			}
			if m.Status.Image == newDefault && !has[m.Name] {
				has[m.Name] = true
				order = append(order, m.Name)
			}
			if !has[m.Name] && i > 0 {
				f.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonKeepingImage, oldDefault, newDefault)
				f.wantCondition(m, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
			}
		}
		if updating > 1 {
			t.Fatalf("after %d seconds %d are being updated", i, updating)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for _, c := range f.clusters {
		c.converge()
	}
	f.lists = 0
	if f.step(); f.lists != 0 {
		t.Errorf("all are up to date, and the operator listed all Memcacheds %d times", f.lists)
	}
}

func TestRevertToTheDefaultImageWaitsForNothing(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.reconciler.Options.DefaultImage = oldDefault
	for failing, edit := range map[string]func(*v1alpha1.MemcachedSpec){
		"example.com/other:1.6.44":           func(spec *v1alpha1.MemcachedSpec) { spec.Image = "example.com/other:1.6.44" },
		"example.com/other:1.6.38":           func(spec *v1alpha1.MemcachedSpec) { spec.Image = "example.com/other" },
		"docker.io/library/memcached:1.6.44": func(spec *v1alpha1.MemcachedSpec) { spec.Version = "1.6.44" },
	} {
		f.clusters[1].unpullable = failing
		f.change("b", func(m *v1alpha1.Memcached) { edit(&m.Spec) })
		for range 10 {
			f.step()
		}
		f.wantCondition(f.get("b"), v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonImageCannotBePulled, failing)
		f.change("b", func(m *v1alpha1.Memcached) { m.Spec.Image, m.Spec.Version = "", "" })
		if m := f.clusters[1].converge(); m.Status.Image != oldDefault {
			t.Errorf("after the revert of %s the image is %s", failing, m.Status.Image)
		}
		f.wantCondition(f.get("b"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
	}
}

func TestMemcachedsKeepTheirImageWhenAnUpdateToTheDefaultImageFails(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	f.clusters[0].unpullable = newDefault
	for range 10 {
		f.step()
	}
	f.wantCondition(f.get("a"), v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonImageCannotBePulled)
	before := f.writes.Load()
	for range 5 {
		f.step()
	}
	if n := f.writes.Load() - before; n != 0 {
		t.Errorf("the operator wrote %d times while the rollout had stopped", n)
	}
	for _, name := range []string{"b", "c"} {
		f.wantCondition(f.get(name), v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonKeepingImage, "Degraded", "set spec.version")
	}
	if m := f.add("new").converge(); m.Status.Image != newDefault {
		t.Errorf("a new Memcached has the image %s", m.Status.Image)
	}
	f.change("c", func(m *v1alpha1.Memcached) { m.Spec.Version = "1.6.45" })
	if m := f.clusters[2].converge(); m.Status.Image != newDefault || m.Status.UpdatedSize != 2 {
		t.Errorf("a Memcached with a version has the image %s on %d shards", m.Status.Image, m.Status.UpdatedSize)
	}
	f.clusters[0].unpullable = ""
	for i := 0; f.get("b").Status.Image != newDefault; i++ {
		if i == 100 {
			t.Fatalf("b doesn't follow once a can: %+v", f.get("b").Status)
		}
		f.step()
	}
}
