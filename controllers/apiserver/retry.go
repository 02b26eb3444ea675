package apiserver

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ControllerOptions returns the options of a controller that reconciles so many objects at once. A reconcile that failed is repeated
// after RejectionRecheck at the latest: by default, what was rejected for a few minutes would wait for as many minutes more.
func ControllerOptions(concurrency int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, RejectionRecheck),
	}
}
