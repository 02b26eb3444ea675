package enqueue

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// byLabel requests the object that a label names.
var byLabel = Named(func(o client.Object) string { return o.GetLabels()["of"] })

func TestDelayedBatchesEventsAndKeepsTheirPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = time.Second
		q := priorityqueue.New[reconcile.Request]("delayed")
		defer q.ShutDown()
		h := Delayed(byLabel, delay, 0)
		service := func(owner, version string) *corev1.Service {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Labels: map[string]string{"of": owner}}}
		}
		h.Create(t.Context(), ctrlevent.CreateEvent{Object: service("listed", "1"), IsInInitialList: true}, q)
		h.Create(t.Context(), ctrlevent.CreateEvent{Object: service("created", "1")}, q)
		for range 9 {
			h.Update(t.Context(), ctrlevent.UpdateEvent{ObjectOld: service("created", "1"), ObjectNew: service("created", "2")}, q)
		}
		h.Delete(t.Context(), ctrlevent.DeleteEvent{Object: service("created", "2")}, q)
		arrived := func(after time.Duration) int {
			time.Sleep(after) //nolint:forbidigo // the fake time of a bubble
			synctest.Wait()
			return q.Len()
		}
		if n := arrived(delay - 1); n != 0 {
			t.Errorf("%d requests arrive early", n)
		}
		if n := arrived(1); n != 2 {
			t.Fatalf("%d requests arrive, want 2", n)
		}
		want := map[string]int{"listed": ctrlhandler.LowPriority, "created": 0}
		for range 2 {
			request, priority, _ := q.GetWithPriority()
			q.Done(request)
			if at, ok := want[request.Name]; !ok || at != priority {
				t.Errorf("%s has priority %d", request.Name, priority)
			}
			delete(want, request.Name)
		}
		if n := arrived(time.Hour); n != 0 {
			t.Errorf("%d requests arrive again", n)
		}
	})
}

func TestDelayedEventsWithPriorityComeBeforeOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := priorityqueue.New[reconcile.Request]("prioritized")
		defer q.ShutDown()
		h := Delayed(byLabel, time.Second, 1)
		pod := func(owner, version string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Labels: map[string]string{"of": owner}}}
		}
		h.Create(t.Context(), ctrlevent.CreateEvent{Object: pod("listed", "1"), IsInInitialList: true}, q)
		h.Update(t.Context(), ctrlevent.UpdateEvent{ObjectOld: pod("resynced", "1"), ObjectNew: pod("resynced", "1")}, q)
		for _, name := range []string{"new", "lost"} {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		h.Delete(t.Context(), ctrlevent.DeleteEvent{Object: pod("lost", "2")}, q)
		time.Sleep(time.Second) //nolint:forbidigo // the fake time of a bubble
		synctest.Wait()
		var got []string
		for range 4 {
			request, _ := q.Get()
			q.Done(request)
			got = append(got, request.Name)
		}
		if want := []string{"lost", "new", "listed", "resynced"}; !slices.Equal(got, want) {
			t.Errorf("order %v, want %v", got, want)
		}
	})
}

// A policy that denies a write may quote the ID of the request: each denial would be written, and cause the next one.
func TestAttemptOfARejectedWriteRequestsNoOther(t *testing.T) {
	was := &v1beta1.Memcached{Status: v1beta1.MemcachedStatus{Bootstrap: &v1beta1.BootstrapStatus{}, Discovery: &v1beta1.DiscoveryStatus{Size: 2}, Conditions: []metav1.Condition{{Type: v1beta1.ConditionDegraded}}}}
	for name, c := range map[string]struct {
		change func(*v1beta1.Memcached)
		want   bool
	}{
		"its messages": {func(m *v1beta1.Memcached) {
			m.ResourceVersion, m.Status.Conditions[0].Message, m.Status.Bootstrap.Message = "2", "denied: request 2", "denied: request 2"
		}, false},
		"the version of its list": {func(m *v1beta1.Memcached) {
			m.ResourceVersion, m.Status.Discovery.Version, m.Status.Discovery.LastChangeTime = "2", 2, metav1.Now()
		}, false},
		"the size of its list": {func(m *v1beta1.Memcached) { m.Status.Discovery.Size = 1 }, true},
		"its reasons":          {func(m *v1beta1.Memcached) { m.Status.Conditions[0].Reason = v1beta1.ReasonApplyRejected }, true},
		"its annotations":      {func(m *v1beta1.Memcached) { m.Annotations = map[string]string{v1beta1.AnnotationRetry: "2"} }, true},
		"its spec":             {func(m *v1beta1.Memcached) { m.Spec.Paused = true }, true},
	} {
		is := was.DeepCopy()
		c.change(is)
		if got := SaysMore.Update(ctrlevent.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != c.want {
			t.Errorf("a change of %s requests a reconcile: %t", name, got)
		}
	}
	if !SaysMore.Update(ctrlevent.UpdateEvent{ObjectOld: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, ObjectNew: &corev1.Pod{}}) {
		t.Error("an object of another kind requests nothing")
	}
}
