package memcached

import (
	"context"
	"math"
	"slices"
	"strings"
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

func TestFewMemcachedsFollowTheDefaultImageAtATime(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) // a Sunday
	with := func(name, image string, edits ...func(*v1alpha1.Memcached)) v1alpha1.Memcached {
		m := v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		m.Status.Image, m.Status.DefaultImage, m.Status.Size, m.Status.UpdatedSize = image, image, 3, 3
		for _, edit := range edits {
			edit(&m)
		}
		return m
	}
	behind := func(name string, edits ...func(*v1alpha1.Memcached)) v1alpha1.Memcached {
		return with(name, oldDefault, edits...)
	}
	updating := func(m *v1alpha1.Memcached) { m.Status.Update = &v1alpha1.UpdateStatus{} }
	scalesOut := func(m *v1alpha1.Memcached) { m.Status.UpdatedSize = 1 }
	waitsForWindow := func(m *v1alpha1.Memcached) {
		m.Status.Update = &v1alpha1.UpdateStatus{Gate: v1alpha1.GateOutsideMaintenanceWindow}
	}
	degraded := func(m *v1alpha1.Memcached) {
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue}}
	}
	paused := func(m *v1alpha1.Memcached) { m.Spec.Paused = true }
	deleted := func(m *v1alpha1.Memcached) { m.DeletionTimestamp = &metav1.Time{Time: now} }
	pinned := func(m *v1alpha1.Memcached) { m.Spec.Version = "1.6.45" }
	closed := func(m *v1alpha1.Memcached) {
		m.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{MaintenanceWindows: []v1alpha1.MaintenanceWindow{{Start: "13:00", DurationSeconds: 3600}}}
	}
	elsewhere := func(m *v1alpha1.Memcached) { m.Namespace = "a-team" }
	const inOrder, stopped = "in the order of namespaces and names", "another Memcached to it is Degraded"
	for name, c := range map[string]struct {
		m       v1alpha1.Memcached
		others  []v1alpha1.Memcached
		atOnce  int
		message string // a part of it; empty when it follows
		recheck time.Duration
	}{
		"it is alone":                         {behind("b"), nil, 1, "", 0},
		"it is the first":                     {behind("b"), []v1alpha1.Memcached{behind("c")}, 1, "", 0},
		"one is before it":                    {behind("b"), []v1alpha1.Memcached{behind("a")}, 1, inOrder, followPoll},
		"one of another namespace is before":  {behind("b"), []v1alpha1.Memcached{behind("z", elsewhere)}, 1, inOrder, followPoll},
		"three are before it":                 {behind("d"), []v1alpha1.Memcached{behind("a"), behind("b"), behind("c")}, 1, inOrder, 3 * followPoll},
		"two follow at a time":                {behind("b"), []v1alpha1.Memcached{behind("a")}, 2, "", 0},
		"one after it is being updated":       {behind("b"), []v1alpha1.Memcached{with("c", newDefault, updating)}, 1, inOrder, followPoll},
		"one after it scales out":             {behind("b"), []v1alpha1.Memcached{with("c", newDefault, scalesOut, degraded)}, 1, "", 0},
		"one is up to date":                   {behind("b"), []v1alpha1.Memcached{with("a", newDefault)}, 1, "", 0},
		"an updated one waits for its window": {behind("b"), []v1alpha1.Memcached{with("a", newDefault, waitsForWindow)}, 1, "", 0},
		"an updated one was paused":           {behind("b"), []v1alpha1.Memcached{with("a", newDefault, updating, paused)}, 1, "", 0},
		"the update of one is Degraded":       {behind("b"), []v1alpha1.Memcached{with("a", newDefault, updating, degraded)}, 9, stopped, maxFollowPoll},
		"one is Degraded after its update":    {behind("b"), []v1alpha1.Memcached{with("a", newDefault, degraded)}, 1, "", 0},
		"a pinned one is being updated":       {behind("b"), []v1alpha1.Memcached{with("a", newDefault, pinned, func(m *v1alpha1.Memcached) { m.Spec.Image = "memcached" }, updating, degraded)}, 1, "", 0},
		"the one before can't follow now":     {behind("b"), []v1alpha1.Memcached{behind("a", degraded), behind("a", paused), behind("a", closed), behind("a", deleted)}, 1, "", 0},
		"a new one is before it":              {behind("b"), []v1alpha1.Memcached{with("a", "")}, 1, "", 0},
		"none is to follow":                   {behind("b"), nil, 0, "set to update none", 0},
		"it is paused":                        {behind("b", paused), nil, 1, "neither paused nor Degraded", 0},
		"it is Degraded":                      {behind("b", degraded), nil, 1, "neither paused nor Degraded", 0},
		"its maintenance window is closed":    {behind("b", closed), nil, 1, "in a maintenance window", time.Hour},
		"it is behind a thousand":             {behind("b"), slices.Repeat([]v1alpha1.Memcached{behind("a")}, 1000), 1, inOrder, maxFollowPoll},
	} {
		t.Run(name, func(t *testing.T) {
			got := followOf(&c.m, append(c.others, c.m), newDefault, c.atOnce, now)
			if (got.message == "") != (c.message == "") || !strings.Contains(got.message, c.message) || got.recheck != c.recheck {
				t.Errorf("message %q, recheck after %s; want %q, %s", got.message, got.recheck, c.message, c.recheck)
			}
			if got.message != "" && !strings.Contains(got.message, "spec.version") {
				t.Errorf("the message doesn't say what to do: %q", got.message)
			}
		})
	}
}

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
	c.writesLeft.Store(math.MaxInt64)
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
