// Package fair shares the workers of a controller among namespaces.
package fair

import (
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// BatchSize bounds how many objects a reconcile applies, patches, creates and deletes each, and how many missing names it
// looks up. The others follow in the next reconcile, behind the requests of other namespaces: 1,000 shards are 2,003
// objects, and would occupy a worker for tens of seconds.
const BatchSize = 50

// Options returns the options of a controller of whose workers one namespace uses at most
// half. The last quarter of them is for namespaces that have none: however many requests the
// others cause, and however long these take, such a namespace has a worker at once.
func Options(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return newQueue(workers, priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }))
		},
	}
}

// queue hands out a request when its namespace has a share of the workers left.
type queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	workers int

	lock sync.Mutex
	// busy are the workers of each namespace that has any, and total is their sum.
	busy  map[string]int
	total int
	// waiting are requests whose namespace has its share, in their order.
	waiting []waiting
}

type waiting struct {
	request  reconcile.Request
	priority int
}

func newQueue(workers int, of priorityqueue.PriorityQueue[reconcile.Request]) *queue {
	return &queue{PriorityQueue: of, workers: workers, busy: map[string]int{}}
}

// Get implements workqueue.TypedInterface.
func (q *queue) Get() (request reconcile.Request, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *queue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	for {
		request, priority, shutdown = q.PriorityQueue.GetWithPriority()
		if shutdown || q.begin(waiting{request, priority}) {
			return request, priority, shutdown
		}
	}
}

// begin takes a worker for a request, or lets it wait.
func (q *queue) begin(w waiting) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	if !q.hasShare(w.request.Namespace) {
		q.waiting = append(q.waiting, w)
		return false
	}
	q.busy[w.request.Namespace]++
	q.total++
	return true
}

// hasShare reports whether a namespace has a share of the workers left.
func (q *queue) hasShare(namespace string) bool {
	n := q.busy[namespace]
	return n == 0 || n < q.workers/2 && q.total < q.workers-q.workers/4
}

// Done implements workqueue.TypedInterface. The first request that waits for the worker returns
// to the queue.
func (q *queue) Done(request reconcile.Request) {
	q.PriorityQueue.Done(request)
	q.lock.Lock()
	defer q.lock.Unlock()
	q.total--
	if q.busy[request.Namespace]--; q.busy[request.Namespace] == 0 {
		delete(q.busy, request.Namespace)
	}
	i := slices.IndexFunc(q.waiting, func(w waiting) bool { return q.hasShare(w.request.Namespace) })
	if i < 0 {
		return
	}
	next := q.waiting[i]
	q.waiting = slices.Delete(q.waiting, i, i+1)
	// Added first and really, not only into the buffer that Len empties: an event may have added
	// the request too, and it would be handed out for that one before it is added here.
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &next.priority}, next.request)
	q.Len()
	q.PriorityQueue.Done(next.request)
}
