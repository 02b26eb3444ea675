package fair

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const workers = 16

// run runs a controller's workers, each of which works on a request until finish, or until stop.
// begun returns the number of requests that workers have begun by namespace.
func run(t *testing.T) (q *queue, begun func() map[string]int, finish func(namespace string), stop func()) {
	q = newQueue(workers, priorityqueue.New[reconcile.Request](strings.ReplaceAll(t.Name(), "/", "-")))
	requests, done := make(chan reconcile.Request, 10000), map[string]chan struct{}{}
	for _, namespace := range []string{"loud-0", "loud-1", "loud-2", "loud-3", "loud-4", "quiet"} {
		done[namespace] = make(chan struct{})
	}
	for range workers {
		go func() {
			for {
				request, shutdown := q.Get()
				if shutdown {
					return
				}
				requests <- request
				<-done[request.Namespace]
				q.Done(request)
			}
		}()
	}
	count := map[string]int{}
	begun = func() map[string]int {
		synctest.Wait()
		for len(requests) > 0 {
			count[(<-requests).Namespace]++
		}
		return count
	}
	finish = func(namespace string) { done[namespace] <- struct{}{}; synctest.Wait() }
	return q, begun, finish, func() {
		q.ShutDown()
		for _, c := range done {
			close(c)
		}
	}
}

func add(q *queue, namespace string, n int) {
	for i := range n {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(i)}})
	}
}

func TestNamespaceHasAWorkerHoweverManyOthersReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, begun, finish, stop := run(t)
		defer stop()
		add(q, "loud-0", 100)
		if n := begun()["loud-0"]; n != workers/2 {
			t.Errorf("one namespace has %d workers of %d", n, workers)
		}
		for i := 1; i < 5; i++ {
			add(q, fmt.Sprintf("loud-%d", i), 100)
			begun()
		}
		add(q, "quiet", 1)
		if begun()["quiet"] != 1 {
			t.Errorf("a namespace has no worker while five others cause more requests than there are workers: %v", begun())
		}
		finished := map[string]int{}
		for range 501 { // no request waits while a worker is free
			for namespace, n := range begun() {
				if n > finished[namespace] {
					finish(namespace)
					finished[namespace]++
					break
				}
			}
		}
		if want := map[string]int{"loud-0": 100, "loud-1": 100, "loud-2": 100, "loud-3": 100, "loud-4": 100, "quiet": 1}; !maps.Equal(finished, want) {
			t.Errorf("finished %v", finished)
		}
	})
}

func TestRequestThatWaitedIsHandedOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, begun, finish, stop := run(t)
		defer stop()
		add(q, "loud-0", 20)
		begun()
		add(q, "loud-0", 20) // those that wait are added again, as by events
		for range 20 + workers/2 {
			finish("loud-0") // the first ones are handed out again, the others are not
		}
		if n := begun()["loud-0"]; n != 20+workers/2 || len(q.waiting) != 0 || q.total != 0 || len(q.busy) != 0 {
			t.Errorf("%d requests were handed out, %+v wait, %d workers of %v are busy", n, q.waiting, q.total, q.busy)
		}
	})
}
