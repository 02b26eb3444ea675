package fair

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestNamespaceHasAWorkerHoweverManyOthersReconcile(t *testing.T) {
	const workers = 16
	started, stop := make(chan string), make(chan struct{})
	r := Reconciler(reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
		started <- request.Namespace
		<-stop
		return reconcile.Result{}, nil
	}), workers)
	// request reports whether a worker began with the request.
	request := func(namespace string) bool {
		result := make(chan reconcile.Result, 1)
		go func() {
			got, _ := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "cache"}})
			result <- got
		}()
		select {
		case <-started:
			return true
		case got := <-result:
			if got.RequeueAfter != retry {
				t.Errorf("a request without a worker is tried again after %s", got.RequeueAfter)
			}
			return false
		}
	}
	count := func(namespace string) (n int) {
		for range 2 * workers {
			if request(namespace) {
				n++
			}
		}
		return n
	}
	if n := count("loud-0"); n != workers/2 {
		t.Errorf("one namespace has %d workers of %d", n, workers)
	}
	for i := 1; i < 5; i++ {
		count(fmt.Sprintf("loud-%d", i))
	}
	if !request("quiet") {
		t.Error("a namespace has no worker while five others cause more reconciles than there are workers")
	}
	close(stop)
}

func TestWorkersAreReturned(t *testing.T) {
	r := Reconciler(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	}), 16)
	for range 100 {
		if got, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil || got.RequeueAfter != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
}
