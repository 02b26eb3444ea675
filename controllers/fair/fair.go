// Package fair shares the workers of a controller among namespaces.
package fair

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retry is when a request for which there was no worker is tried again. A reconcile takes tens
// of milliseconds.
const retry = 50 * time.Millisecond

// Reconciler returns a reconciler of which one namespace uses at most half of the workers. The
// last quarter of them is for namespaces that have none: however many reconciles the others
// cause, and however long these take, such a namespace has a worker at once.
func Reconciler(of reconcile.Reconciler, workers int) reconcile.Reconciler {
	return &fair{of: of, workers: workers, busy: map[string]int{}}
}

type fair struct {
	of      reconcile.Reconciler
	workers int

	lock sync.Mutex
	// busy are the workers of each namespace that has any, and total is their sum.
	busy  map[string]int
	total int
}

// Reconcile implements reconcile.Reconciler.
func (f *fair) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !f.begin(request.Namespace) {
		return reconcile.Result{RequeueAfter: retry}, nil
	}
	defer f.end(request.Namespace)
	return f.of.Reconcile(ctx, request)
}

// begin takes a worker for a namespace, unless it has its share.
func (f *fair) begin(namespace string) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	if n := f.busy[namespace]; n > 0 && (n >= f.workers/2 || f.total >= f.workers-f.workers/4) {
		return false
	}
	f.busy[namespace]++
	f.total++
	return true
}

func (f *fair) end(namespace string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.total--
	if f.busy[namespace]--; f.busy[namespace] == 0 {
		delete(f.busy, namespace)
	}
}
