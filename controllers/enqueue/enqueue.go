// Package enqueue has event handlers that request an object by its name, and delays or prioritizes the requests of handlers.
package enqueue

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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

// Delayed delays a handler's requests, so that equal ones are batched.
func Delayed(by ctrlhandler.EventHandler, delay time.Duration) ctrlhandler.EventHandler {
	return wrapQueue(by, func(q priorityQueue) queue { return delayQueue{q, delay} })
}

// Prioritized makes a handler's requests come before others with a lower priority.
func Prioritized(by ctrlhandler.EventHandler, priority int) ctrlhandler.EventHandler {
	return wrapQueue(by, func(q priorityQueue) queue { return prioritizingQueue{q, priority} })
}

// wrapQueue makes a handler add its requests to a wrapper of the controller's queue.
func wrapQueue(by ctrlhandler.EventHandler, lead func(priorityQueue) queue) ctrlhandler.EventHandler {
	to := func(q queue) queue {
		if q, ok := q.(priorityQueue); ok {
			return lead(q)
		}
		return q
	}
	return ctrlhandler.Funcs{
		CreateFunc: func(ctx context.Context, e ctrlevent.CreateEvent, q queue) { by.Create(ctx, e, to(q)) },
		UpdateFunc: func(ctx context.Context, e ctrlevent.UpdateEvent, q queue) { by.Update(ctx, e, to(q)) },
		DeleteFunc: func(ctx context.Context, e ctrlevent.DeleteEvent, q queue) { by.Delete(ctx, e, to(q)) },
	}
}

// delayQueue delays requests and keeps their priority: objects that existed when the operator
// started come last.
type delayQueue struct {
	priorityQueue
	delay time.Duration
}

func (q delayQueue) Add(request reconcile.Request) { q.AddAfter(request, q.delay) }

func (q delayQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	o.After = max(o.After, q.delay)
	q.priorityQueue.AddWithOpts(o, requests...)
}

// prioritizingQueue prioritizes requests without a priority: objects that existed when the
// operator started still come last.
type prioritizingQueue struct {
	priorityQueue
	priority int
}

func (q prioritizingQueue) Add(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &q.priority}, request)
}
