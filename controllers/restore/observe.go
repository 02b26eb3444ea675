package restore

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

type observation struct {
	transfer.Observation
	restore *v1alpha1.MemcachedRestore
	// backup that is restored; nil when there is none of that name, or none is named.
	backup *v1alpha1.MemcachedBackup
	// services that the operator created for a restore that has finished.
	services []client.Object
}

func (r *Reconciler) observe(ctx context.Context, common transfer.Observation) (obs *observation, err error) {
	obs = &observation{Observation: common, restore: common.Object.(*v1alpha1.MemcachedRestore)}
	status, ref := obs.restore.Status, obs.restore.Spec.BackupRef
	switch {
	case transfer.IsFinished(status.TransferStatus):
		obs.services, err = r.servicesOf(ctx, obs.restore)
		return obs, err
	case ref == nil:
		return obs, nil
	}
	readers := []client.Reader{r.Client, r.APIReader}
	if status.Phase == v1alpha1.TransferRunning && status.JobUID == "" {
		// A backup that is being deleted looks for running restores before it deletes its
		// snapshot, and a running restore checks that here before it has a Job. Neither
		// may miss the other because of a cache.
		readers = readers[1:]
	}
	b := &v1alpha1.MemcachedBackup{}
	found, err := transfer.Find(ctx, client.ObjectKey{Namespace: obs.restore.Namespace, Name: ref.Name}, b, readers...)
	if found {
		obs.backup = b
	}
	return obs, err
}

func (r *Reconciler) servicesOf(ctx context.Context, restore *v1alpha1.MemcachedRestore) (own []client.Object, err error) {
	var services corev1.ServiceList
	err = r.Client.List(ctx, &services, client.InNamespace(restore.Namespace),
		client.MatchingLabels(transfer.Labels(transfer.Restore, restore.UID)),
		client.MatchingFields{index.Instance: transfer.Name(transfer.Restore, restore.UID)})
	if err != nil {
		return nil, fmt.Errorf("listing the restore's Services: %w", err)
	}
	for i := range services.Items {
		if metav1.IsControlledBy(&services.Items[i], restore) {
			own = append(own, &services.Items[i])
		}
	}
	return own, nil
}
