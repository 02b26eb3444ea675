package restore

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

type observation struct {
	transfer.Observation
	restore *v1beta1.MemcachedRestore
	// backup that is restored; nil when there is none of that name, or none is named.
	backup *v1beta1.MemcachedBackup
	// others are the unfinished restores into the same Memcached.
	others []*v1beta1.MemcachedRestore
}

func observe(ctx context.Context, r transfer.Observer, common transfer.Observation) (obs *observation, err error) {
	obs = &observation{Observation: common, restore: common.Object.(*v1beta1.MemcachedRestore)}
	status, ref := obs.restore.Status, obs.restore.Spec.BackupRef
	if status.IsFinished() {
		return obs, nil
	}
	// A backup that is being deleted looks for running restores before it deletes its
	// snapshot, so does an update before it replaces a shard, and another restore before it
	// starts. A running restore checks all of that here before it has a Job. Neither may miss
	// the other because of a cache.
	readers, options := []client.Reader{r.Cache, r.API}, []client.ListOption{client.MatchingFields{index.Memcached: obs.restore.Spec.MemcachedRef.Name}}
	if starts := status.Phase == v1beta1.TransferRunning && status.JobUID == ""; starts {
		readers, options = readers[1:], nil
		if obs.Memcached, err = r.Memcached(ctx, obs.restore, r.API); err != nil {
			return nil, err
		}
	}
	if status.JobUID == "" {
		if obs.others, err = othersOf(ctx, readers[0], obs.restore, options...); err != nil {
			return nil, err
		}
	}
	if ref == nil {
		return obs, nil
	}
	b := &v1beta1.MemcachedBackup{}
	found, err := apiserver.Find(ctx, client.ObjectKey{Namespace: obs.restore.Namespace, Name: ref.Name}, b, readers...)
	if found {
		obs.backup = b
	}
	return obs, err
}

func othersOf(ctx context.Context, from client.Reader, restore *v1beta1.MemcachedRestore, options ...client.ListOption) (others []*v1beta1.MemcachedRestore, err error) {
	var all v1beta1.MemcachedRestoreList
	if err := from.List(ctx, &all, append(options, client.InNamespace(restore.Namespace))...); err != nil {
		return nil, fmt.Errorf("listing restores: %w", err)
	}
	for i := range all.Items {
		o := &all.Items[i]
		if o.UID != restore.UID && o.Spec.MemcachedRef == restore.Spec.MemcachedRef && !o.Status.IsFinished() {
			others = append(others, o)
		}
	}
	return others, nil
}
