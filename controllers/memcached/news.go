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

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// gathered has a handler's requests wait for others of the same.
func gathered(by ctrlhandler.EventHandler) ctrlhandler.EventHandler {
	return ctrlhandler.Funcs{
		CreateFunc: func(ctx context.Context, e ctrlevent.CreateEvent, q queue) { by.Create(ctx, e, later(q)) },
		UpdateFunc: func(ctx context.Context, e ctrlevent.UpdateEvent, q queue) { by.Update(ctx, e, later(q)) },
		DeleteFunc: func(ctx context.Context, e ctrlevent.DeleteEvent, q queue) { by.Delete(ctx, e, later(q)) },
	}
}

// later returns a queue to which everything is added after a while, with the priority
// that it has: what there was when the operator started comes last.
func later(q queue) queue {
	if q, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		return laterQueue{q}
	}
	return q
}

type laterQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
}

// Add implements workqueue.TypedInterface.
func (q laterQueue) Add(request reconcile.Request) { q.AddAfter(request, echoes) }

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q laterQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	o.After = max(o.After, echoes)
	q.PriorityQueue.AddWithOpts(o, requests...)
}
