package memcached

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// echoes is how long changes of what a Memcached owns are gathered. Nearly all are the
// echo of the operator's own writes, and of the counts that a ReplicaSet keeps: a
// dozen for each Memcached that is made, within a second and of no news. What somebody
// else changed is mended that much later.
const echoes = 200 * time.Millisecond

// urgent is the priority of news of pods. A shard that is lost, or one that is being
// changed, does not wait for thousands of Memcacheds with which nothing was begun.
const urgent = 1

type (
	queue         = workqueue.TypedRateLimitingInterface[reconcile.Request]
	priorityQueue = priorityqueue.PriorityQueue[reconcile.Request]
)

// gathered has a handler's requests wait for others of the same.
func gathered(by ctrlhandler.EventHandler) ctrlhandler.EventHandler {
	return through(by, func(q priorityQueue) queue { return laterQueue{q} })
}

// urgently has a handler's requests come before others.
func urgently(by ctrlhandler.EventHandler) ctrlhandler.EventHandler {
	return through(by, func(q priorityQueue) queue { return urgentQueue{q} })
}

// through has a handler add its requests to a queue that leads to the controller's.
func through(by ctrlhandler.EventHandler, lead func(priorityQueue) queue) ctrlhandler.EventHandler {
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

// laterQueue adds everything after a while, with the priority that it has: what there
// was when the operator started comes last.
type laterQueue struct{ priorityQueue }

// Add implements workqueue.TypedInterface.
func (q laterQueue) Add(request reconcile.Request) { q.AddAfter(request, echoes) }

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q laterQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	o.After = max(o.After, echoes)
	q.priorityQueue.AddWithOpts(o, requests...)
}

// urgentQueue adds before others what has no priority of its own: what there was when
// the operator started still comes last.
type urgentQueue struct{ priorityQueue }

// Add implements workqueue.TypedInterface.
func (q urgentQueue) Add(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(urgent)}, request)
}
