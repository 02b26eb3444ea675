// Package enqueue has event handlers that request an object by its name, delays or prioritizes the requests of handlers, and omits updates
// that only another attempt of a rejected write has caused.
package enqueue

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

type (
	queue         = workqueue.TypedRateLimitingInterface[reconcile.Request]
	priorityQueue = priorityqueue.PriorityQueue[reconcile.Request]
)

// Named requests the object in the same namespace with the name that nameOf returns; none if that is empty.
func Named(nameOf func(client.Object) string) ctrlhandler.EventHandler {
	return ctrlhandler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		name := nameOf(o)
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
	})
}

// Delayed delays a handler's requests, so that equal ones are batched, and gives them a priority. Objects that existed when
// the operator started come last whatever the priority.
func Delayed(by ctrlhandler.EventHandler, delay time.Duration, priority int) ctrlhandler.EventHandler {
	to := func(q queue) queue {
		if q, ok := q.(priorityQueue); ok {
			return delayQueue{q, priorityqueue.AddOpts{After: delay, Priority: &priority}}
		}
		return q
	}
	return ctrlhandler.Funcs{
		CreateFunc: func(ctx context.Context, e ctrlevent.CreateEvent, q queue) { by.Create(ctx, e, to(q)) },
		UpdateFunc: func(ctx context.Context, e ctrlevent.UpdateEvent, q queue) { by.Update(ctx, e, to(q)) },
		DeleteFunc: func(ctx context.Context, e ctrlevent.DeleteEvent, q queue) { by.Delete(ctx, e, to(q)) },
	}
}

type delayQueue struct {
	priorityQueue
	options priorityqueue.AddOpts
}

func (q delayQueue) Add(request reconcile.Request) {
	q.priorityQueue.AddWithOpts(q.options, request)
}

// AddWithOpts is for requests with a priority of their own.
func (q delayQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	o.After = max(o.After, q.options.After)
	q.priorityQueue.AddWithOpts(o, requests...)
}

// SaysMore selects the updates of a Memcached that change more than what differs with each attempt of a write that is rejected: the message,
// such as in the ID of the request or the port of a connection, and the version of a list that no pod gets. A status with these must not cause
// the next attempt.
var SaysMore = predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
	return !equality.Semantic.DeepEqual(withoutAttempts(e.ObjectOld), withoutAttempts(e.ObjectNew))
}}

// withoutAttempts returns a Memcached without what differs with each attempt.
func withoutAttempts(o client.Object) client.Object {
	m, ok := o.(*v1beta1.Memcached)
	if !ok {
		return o
	}
	m = m.DeepCopy()
	m.ResourceVersion = ""
	for i := range m.Status.Conditions {
		m.Status.Conditions[i].Message = ""
	}
	if m.Status.Bootstrap != nil {
		m.Status.Bootstrap.Message = ""
	}
	if m.Status.Discovery != nil {
		m.Status.Discovery.Version, m.Status.Discovery.LastChangeTime = 0, metav1.Time{}
	}
	return m
}
