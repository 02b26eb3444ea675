package restore

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

// Reconciler runs MemcachedRestores.
type Reconciler struct{ transfer.Engine }

// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedrestores,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedrestores/status,verbs=patch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedbackups,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller to the manager. A backup triggers the restores
// that wait for it, and so does another restore into the same Memcached.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	list := &v1beta1.MemcachedRestoreList{}
	return r.NewController(mgr, &v1beta1.MemcachedRestore{}, list).
		Watches(&v1beta1.MemcachedBackup{}, r.EnqueueWaiting(list, index.Backup, client.Object.GetName)).
		Watches(&v1beta1.MemcachedRestore{}, r.EnqueueWaiting(list, index.Memcached, func(o client.Object) string {
			return o.(*v1beta1.MemcachedRestore).Spec.MemcachedRef.Name
		}), transfer.Announced).
		Complete(r)
}

// Reconcile runs one restore.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return transfer.Reconcile(ctx, &r.Engine, request, &v1beta1.MemcachedRestore{}, observe)
}
