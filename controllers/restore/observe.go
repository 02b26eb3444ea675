package restore

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/index"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// observed is all that a reconcile saw.
type observed struct {
	restore *v1alpha1.MemcachedRestore
	// memcached that is filled; nil when there is none of that name.
	memcached *v1alpha1.Memcached
	// backup that is read; nil when there is none of that name, or none is named.
	backup *v1alpha1.MemcachedBackup
	// load is the Job.
	load snapshotjob.Observed
	// services are those of its own by which it reaches shards that do not serve.
	services []corev1.Service
	// now is when it was seen.
	now time.Time
}

// observe reads all that a reconcile needs.
func (r *Reconciler) observe(ctx context.Context, restore *v1alpha1.MemcachedRestore) (*observed, error) {
	seen := &observed{restore: restore, now: r.Clock.Now()}
	ended, runs := snapshotjob.HasEnded(restore.Status.RunStatus), restore.Status.Phase == v1alpha1.RunRunning
	var err error
	observer := snapshotjob.Observer{Cache: r.Client, Live: r.Live, Progress: r.Progress}
	if seen.load, err = observer.Observe(ctx, snapshotjob.Restore, restore, runs, seen.now); err != nil {
		return nil, err
	}
	m := &v1alpha1.Memcached{}
	switch ok, err := r.get(ctx, restore.Namespace, restore.Spec.Memcached.Name, m, false, ended); {
	case err != nil:
		return nil, fmt.Errorf("looking up Memcached %s: %w", restore.Spec.Memcached.Name, err)
	case ok:
		seen.memcached = m
	}
	if ref := restore.Spec.Backup; ref != nil && !ended {
		b := &v1alpha1.MemcachedBackup{}
		// A backup that is being deleted asks for restores that run before it deletes
		// its snapshot, and what runs asks for that here before it has a Job: neither
		// may miss the other because of a cache.
		switch ok, err := r.get(ctx, restore.Namespace, ref.Name, b, runs && restore.Status.JobUID == "", false); {
		case err != nil:
			return nil, fmt.Errorf("looking up MemcachedBackup %s: %w", ref.Name, err)
		case ok:
			seen.backup = b
		}
	}
	if ended {
		if seen.services, err = r.servicesOf(ctx, restore); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// get reads an object and says whether it exists: from the cache, and then from the
// API server unless the cache's word is enough, as it may lag behind; or from the API
// server alone.
func (r *Reconciler) get(ctx context.Context, namespace, name string, o client.Object, live, cached bool) (bool, error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if !live {
		if err := r.Client.Get(ctx, key, o); !apierrors.IsNotFound(err) || cached {
			return err == nil, client.IgnoreNotFound(err)
		}
	}
	err := r.Live.Get(ctx, key, o)
	return err == nil, client.IgnoreNotFound(err)
}

// servicesOf returns the Services that the operator made for a restore.
func (r *Reconciler) servicesOf(ctx context.Context, restore *v1alpha1.MemcachedRestore) ([]corev1.Service, error) {
	var services corev1.ServiceList
	err := r.Client.List(ctx, &services, client.InNamespace(restore.Namespace), client.MatchingLabels(snapshotjob.Labels(snapshotjob.Restore, restore.UID)),
		index.By(index.Instance, snapshotjob.Name(snapshotjob.Restore, restore.UID)))
	if err != nil {
		return nil, fmt.Errorf("listing the restore's Services: %w", err)
	}
	var own []corev1.Service
	for i := range services.Items {
		if metav1.IsControlledBy(&services.Items[i], restore) {
			own = append(own, services.Items[i])
		}
	}
	return own, nil
}
