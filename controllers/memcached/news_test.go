package memcached

import (
	"context"
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

func TestAnEchoIsGatheredWithOthersAndKeepsItsPriority(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("echoes")
	defer q.ShutDown()
	of := gathered(ctrlhandler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetLabels()["of"]}}}
	}))
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
