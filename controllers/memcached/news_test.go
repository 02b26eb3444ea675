package memcached

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// byOf requests what a label names.
var byOf = ctrlhandler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetLabels()["of"]}}}
})

func TestAnEchoIsGatheredWithOthersAndKeepsItsPriority(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("echoes")
	defer q.ShutDown()
	of := gathered(byOf)
	service := func(memcached, version string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Labels: map[string]string{"of": memcached}}}
	}
	began := time.Now()
	of.Create(t.Context(), ctrlevent.CreateEvent{Object: service("listed", "1"), IsInInitialList: true}, q)
	of.Create(t.Context(), ctrlevent.CreateEvent{Object: service("made", "1")}, q)
	for range 9 {
		of.Update(t.Context(), ctrlevent.UpdateEvent{ObjectOld: service("made", "1"), ObjectNew: service("made", "2")}, q)
	}
	of.Delete(t.Context(), ctrlevent.DeleteEvent{Object: service("made", "2")}, q)
	want := map[string]int{"listed": ctrlhandler.LowPriority, "made": 0}
	for len(want) > 0 {
		request, priority, _ := q.GetWithPriority()
		q.Done(request)
		if at, ok := want[request.Name]; !ok || at != priority {
			t.Errorf("%s comes with priority %d", request.Name, priority)
		}
		delete(want, request.Name)
	}
	if after := time.Since(began); after < echoes {
		t.Errorf("they come after %s", after)
	}
	time.Sleep(2 * echoes)
	if n := q.Len(); n != 0 {
		t.Errorf("%d come once more", n)
	}
}

func TestNewsOfPodsComeBeforeMemcachedsOfWhichThereAreNone(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("news")
	defer q.ShutDown()
	of := urgently(byOf)
	pod := func(memcached, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Labels: map[string]string{"of": memcached}}}
	}
	of.Create(t.Context(), ctrlevent.CreateEvent{Object: pod("listed", "1"), IsInInitialList: true}, q)
	of.Update(t.Context(), ctrlevent.UpdateEvent{ObjectOld: pod("looked-at-again", "1"), ObjectNew: pod("looked-at-again", "1")}, q)
	for _, name := range []string{"new", "lost"} {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	of.Delete(t.Context(), ctrlevent.DeleteEvent{Object: pod("lost", "2")}, q)
	var got []string
	for range 4 {
		request, _ := q.Get()
		q.Done(request)
		got = append(got, request.Name)
	}
	if want := []string{"lost", "new", "listed", "looked-at-again"}; !slices.Equal(got, want) {
		t.Errorf("they come in the order %v", got)
	}
}
