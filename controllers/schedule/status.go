package schedule

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/condition"
)

// maxActive is how many running backups a status names: etcd stores at most 1.5 MiB.
const maxActive = 1000

// makeStatus returns the status that says which backups are active, and when the last one was complete.
func makeStatus(obs observation, active []v1beta1.MemcachedBackup) v1beta1.MemcachedScheduledBackupStatus {
	s := obs.schedule.Status
	s.ObservedGeneration, s.NextScheduleTime, s.Active = obs.schedule.Generation, nil, namesOf(active)
	for _, b := range obs.backups {
		at := b.Status.CompletionTime
		if b.Status.Phase == v1beta1.TransferComplete && at != nil && (s.LastSuccessfulTime == nil || s.LastSuccessfulTime.Before(at)) {
			s.LastSuccessfulTime = at
		}
	}
	return s
}

// withHealth returns a status with its conditions.
func withHealth(s v1beta1.MemcachedScheduledBackupStatus, obs observation, health condition.Health, reason, message string) v1beta1.MemcachedScheduledBackupStatus {
	s.Conditions = condition.Set(s.Conditions, obs.schedule.Generation, obs.now, condition.Of(health, reason, message)...)
	return s
}

// readyCondition returns Ready, whose reason and message describe the schedule, or nil.
func readyCondition(s v1beta1.MemcachedScheduledBackupStatus) *metav1.Condition {
	return meta.FindStatusCondition(s.Conditions, v1beta1.ConditionReady)
}

// namesOf returns the names of backups, at most maxActive.
func namesOf(backups []v1beta1.MemcachedBackup) (names []string) {
	for i := range min(len(backups), maxActive) {
		names = append(names, backups[i].Name)
	}
	return names
}
