package backup

import (
	"context"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/enqueue"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
)

// Reconciler runs MemcachedBackups.
type Reconciler struct{ transfer.Engine }

// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedbackups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedbackups/status,verbs=patch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedrestores,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller to the manager. A restore triggers the backup that
// it reads, whose deletion may wait for it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return r.NewController(mgr, &v1beta1.MemcachedBackup{}, &v1beta1.MemcachedBackupList{}).
		Watches(&v1beta1.MemcachedRestore{}, enqueue.Named(func(o client.Object) string {
			return ptr.Deref(o.(*v1beta1.MemcachedRestore).Spec.BackupRef, v1beta1.BackupReference{}).Name
		})).
		Complete(r)
}

// Reconcile runs one backup.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return transfer.Reconcile(ctx, &r.Engine, request, &v1beta1.MemcachedBackup{}, observe)
}
