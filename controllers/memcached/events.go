package memcached

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// event is one to record.
type event struct{ kind, reason, message string }

// shardEvent is one of a shard. It is recorded as related to the pod that holds the
// shard: of events that differ in their message alone only the first would be kept.
type shardEvent struct {
	event
	pod string
}

// eventsOf returns what a person wants to hear of, from one status to the next.
func eventsOf(m *v1alpha1.Memcached, next v1alpha1.MemcachedStatus) []event {
	var events []event
	was := m.Status
	if was.ObservedGeneration != 0 && was.Size != next.Size {
		events = append(events, event{corev1.EventTypeNormal, v1alpha1.EventScaled, fmt.Sprintf("from %d to %d shards", was.Size, next.Size)})
	}
	events = append(events, bootstrapEvents(was.Bootstrap, next.Bootstrap)...)
	events = append(events, updateEvents(was.Update, next)...)
	before := meta.FindStatusCondition(was.Conditions, v1alpha1.ConditionDegraded)
	after := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionDegraded)
	switch {
	case after.Status == metav1.ConditionTrue && (before == nil || before.Status != after.Status || before.Reason != after.Reason):
		events = append(events, event{corev1.EventTypeWarning, after.Reason, after.Message})
	case after.Status == metav1.ConditionFalse && before != nil && before.Status == metav1.ConditionTrue:
		events = append(events, event{corev1.EventTypeNormal, after.Reason, after.Message})
	}
	return events
}

// shardEventsOf returns what a person wants to hear of shards, from one status to the
// next.
func shardEventsOf(was, next []v1alpha1.ShardStatus) []shardEvent {
	var events []shardEvent
	for _, shard := range next {
		last, known := shardNamed(was, shard.Name)
		add := func(kind, reason, format string, args ...any) {
			events = append(events, shardEvent{event{kind, reason, fmt.Sprintf(format, args...)}, cmp.Or(shard.Pod, last.Pod, shard.Name)})
		}
		switch {
		case shard.Ready && !last.Ready:
			add(corev1.EventTypeNormal, v1alpha1.EventShardReady, "shard %s serves from pod %s", shard.Name, shard.Pod)
		case !shard.Ready && last.Ready:
			add(corev1.EventTypeWarning, v1alpha1.EventShardNotReady, "shard %s does not serve: %s", shard.Name, cmp.Or(shard.Message, "not ready"))
		}
		again := known && last.Start != "" && (shard.ContainerID != last.ContainerID || shard.Restart != last.Restart)
		switch {
		case again && shard.Start == v1alpha1.StartCold:
			add(corev1.EventTypeWarning, v1alpha1.EventShardStartedEmpty, "shard %s started empty in pod %s", shard.Name, shard.Pod)
		case again && shard.Start == v1alpha1.StartWarm:
			add(corev1.EventTypeNormal, v1alpha1.EventShardKeptItems, "shard %s restarted in pod %s with %d of %d items", shard.Name, shard.Pod, shard.Items, shard.ItemsBefore)
		}
	}
	return events
}

// updateEvents returns what a person wants to hear of a change of the spec.
func updateEvents(was *v1alpha1.UpdateStatus, next v1alpha1.MemcachedStatus) []event {
	var events []event
	now := next.Update
	if now == nil {
		if was != nil && !slices.ContainsFunc(next.Shards, func(s v1alpha1.ShardStatus) bool { return !s.Current }) {
			message := fmt.Sprintf("%d shards are as the spec asks, with image %s", len(next.Shards), next.Image)
			if was.ItemsBefore > 0 {
				message += "; " + keptItems(was)
			}
			events = append(events, event{corev1.EventTypeNormal, v1alpha1.EventUpdateFinished, message})
		}
		return events
	}
	if was == nil || was.Revision != now.Revision {
		events = append(events, event{corev1.EventTypeNormal, v1alpha1.EventUpdateStarted, now.Message})
	}
	isNew := was == nil || was.Revision != now.Revision || was.Shard != now.Shard
	if now.Step == rollout.Replace.String() && (isNew || was.Step != now.Step) {
		events = append(events, event{corev1.EventTypeWarning, v1alpha1.EventShardToStartEmpty, fmt.Sprintf("shard %s is to be replaced and will start empty: %s", now.Shard, now.Message)})
	}
	if isTakenBack(now) && (isNew || !isTakenBack(was)) {
		events = append(events, event{corev1.EventTypeWarning, v1alpha1.EventShardRolledBack, fmt.Sprintf("shard %s: %s", now.Shard, now.Message)})
	}
	return events
}

// isTakenBack says whether the shard is on its way back, or already there: a status
// in between may not have been written.
func isTakenBack(u *v1alpha1.UpdateStatus) bool {
	return u.Step == stepBack || u.Gate == rollout.UpdateFailed
}
