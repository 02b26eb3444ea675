package schedule

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

// observation is what a reconcile reads of one schedule.
type observation struct {
	schedule *v1beta1.MemcachedScheduledBackup
	// backups of the schedule, or of a deleted one of its name.
	backups []v1beta1.MemcachedBackup
	// now is when they were read.
	now time.Time
	// noShards is whether the Memcached exists and has size 0.
	noShards bool
}

// observer makes all reads.
type observer struct {
	cache client.Reader
	clock clock.PassiveClock
}

func (r observer) observe(ctx context.Context, s *v1beta1.MemcachedScheduledBackup) (observation, error) {
	obs := observation{schedule: s, now: r.clock.Now()}
	var all v1beta1.MemcachedBackupList
	if err := r.cache.List(ctx, &all, client.InNamespace(s.Namespace),
		client.MatchingLabels{v1beta1.LabelSchedule: s.Name}, client.MatchingFields{index.Schedule: s.Name}); err != nil {
		return obs, fmt.Errorf("listing backups: %w", err)
	}
	for i := range all.Items {
		if belongsTo(&all.Items[i], s.Name) {
			obs.backups = append(obs.backups, all.Items[i])
		}
	}
	m := &v1beta1.Memcached{}
	err := r.cache.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.BackupTemplate.Spec.MemcachedRef.Name}, m)
	obs.noShards = err == nil && resources.Listed(m) == 0
	return obs, client.IgnoreNotFound(err)
}
