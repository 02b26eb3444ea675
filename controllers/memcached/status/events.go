package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// Events returns the events of a change from one status to the next, and of the lost shards.
func Events(was, next v1beta1.MemcachedStatus, obs *observation.Observation, p plan.Plan, res plan.Result) []event.Event {
	return slices.Concat(scalingEvents(was, next, p.Scaling.Cold), memcachedEvents(was, next, obs.Memcached, p.Decision.Change.HandsOver), shardEvents(was, next, obs.Agents), refillEvents(obs, p.Refills.Lost, res))
}

// memcachedEvents returns those of the Memcached.
func memcachedEvents(was, next v1beta1.MemcachedStatus, m *v1beta1.Memcached, handsOver bool) []event.Event {
	var events []event.Event
	if was.ObservedGeneration > 0 && was.Size != next.Size && was.Scaling == nil {
		hazard := ""
		if 0 < next.Size && next.Size < was.Size {
			hazard = ". Keys that return to a remaining shard may have an old value there, from before the last scale-out, until its TTL"
		}
		events = append(events, event.Normal(v1beta1.EventScaled, "from %d to %d shards%s", was.Size, next.Size, hazard))
	}
	if limited := next.LimitedSize; limited != nil && (was.LimitedSize == nil || *was.LimitedSize != *limited) && resources.IsScaleInForbidden(m) {
		events = append(events, event.Warning(v1beta1.ReasonScaleInForbidden, "%s", limited.Message))
	}
	events = append(events, bootstrapEvents(was.Bootstrap, next.Bootstrap)...)
	events = append(events, updateEvents(was.Update, next, handsOver)...)
	events = append(events, costEvents(was.LastUpdate, next.LastUpdate)...)
	before := meta.FindStatusCondition(was.Conditions, v1beta1.ConditionDegraded)
	after := meta.FindStatusCondition(next.Conditions, v1beta1.ConditionDegraded)
	switch {
	case after.Status == metav1.ConditionTrue && (before == nil || before.Status != after.Status || before.Reason != after.Reason):
		events = append(events, event.Warning(after.Reason, "%s", after.Message))
	case after.Status == metav1.ConditionFalse && before != nil && before.Status == metav1.ConditionTrue:
		events = append(events, event.Normal(after.Reason, "%s", after.Message))
	}
	return events
}

// scalingEvents returns those of items that move to other shards. cold is why they don't although the number of shards changes.
func scalingEvents(was, next v1beta1.MemcachedStatus, cold string) (events []event.Event) {
	before, after := ptr.Deref(was.Scaling, v1beta1.ScalingStatus{}), next.Scaling
	if after == nil {
		if cold != "" && len(was.Servers) != len(next.Servers) {
			events = append(events, event.Normal(v1beta1.EventScaledCold, "from %d to %d shards; keys that move are missing at first: %s", len(was.Servers), len(next.Servers), cold))
		}
		return events
	}
	if after.Step == before.Step && after.ID == before.ID {
		return nil
	}
	size := fmt.Sprintf("from %d to %d shards", after.From, after.To)
	switch after.Step {
	case v1beta1.ScalingCopying:
		events = append(events, event.Normal(v1beta1.EventScalingStarted, "%s: copying the items of the keys that move", size))
	case v1beta1.ScalingWaiting:
		events = append(events, event.Normal(v1beta1.EventScalingPublished, "%s: copied %s items; give your clients the new list in status.servers", size, text.Thousands(after.Moved)))
	case v1beta1.ScalingFinishing:
		if after.Problem != "" {
			events = append(events, event.Warning(v1beta1.EventScaledCold, "%s; keys that move are missing at first: %s", size, after.Problem))
		} else if before.Step == v1beta1.ScalingClosing {
			events = append(events, event.Normal(v1beta1.EventScalingFinished, "%s: copied %s items; a client could read a value %s after another one had changed it", size, text.Thousands(after.Moved), milliseconds(after.StaleMilliseconds)))
		}
	}
	return events
}

// shardEvents returns those of the shards. agents are the answers by pod name. The end of a restart says that the shard is ready,
// and an update says by its own events which shard is not ready for a moment.
func shardEvents(was, next v1beta1.MemcachedStatus, agents map[string]agentwire.Status) []event.Event {
	var events []event.Event
	for _, s := range next.Shards {
		last, known := shard.StatusOf(&was, s.Name)
		add := func(e event.Event) {
			e.Pod = cmp.Or(s.PodName, last.PodName, s.Name)
			events = append(events, e)
		}
		restarted := known && last.StartResult != "" && (s.ContainerID != last.ContainerID || s.RestartAnnotation != last.RestartAnnotation)
		updates := next.Update != nil && next.Update.Shard == s.Name && next.Update.Gate == ""
		switch {
		case s.Ready && !last.Ready && !restarted:
			add(event.Normal(v1beta1.EventShardReady, "shard %s is ready in pod %s", s.Name, s.PodName))
		case !s.Ready && last.Ready && !updates:
			add(event.Warning(v1beta1.EventShardNotReady, "shard %s is not ready: %s", s.Name, cmp.Or(s.Message, "not ready")))
		}
		switch {
		case restarted && s.StartResult == v1beta1.StartCold:
			message := fmt.Sprintf("shard %s started empty in pod %s", s.Name, s.PodName)
			moved := last.PodName != "" && last.PodName != s.PodName
			if reason := shard.ColdReason(agents[s.PodName].Start, moved); reason != "" {
				message += ": " + reason
			}
			add(event.Warning(v1beta1.EventShardStartedEmpty, "%s", message))
		case restarted && s.StartResult == v1beta1.StartHandedOver:
			add(event.Normal(v1beta1.EventShardHandedOver, "shard %s moved to pod %s with %d of %d items; %s",
				s.Name, s.PodName, s.Items, s.ItemsBefore, handoverEffect(s.GapMilliseconds, agents[s.PodName].Start)))
		case restarted && s.StartResult == v1beta1.StartWarm:
			add(event.Normal(v1beta1.EventShardKeptItems, "shard %s restarted in pod %s with %d of %d items", s.Name, s.PodName, s.Items, s.ItemsBefore))
		}
	}
	return events
}

// handoverEffect describes what clients could notice of a handover.
func handoverEffect(gapMilliseconds int64, start agentwire.Start) string {
	effect := fmt.Sprintf("no pod responded for %s", time.Duration(gapMilliseconds)*time.Millisecond)
	if start.Mode == agentwire.ModeAvailable {
		stale := time.Duration(start.StaleSeconds * float64(time.Second)).Round(time.Millisecond)
		effect += fmt.Sprintf(", and clients could read values that were up to %s old (mode %s)", stale, start.Mode)
	}
	if start.Reason != "" {
		effect += "; " + start.Reason
	}
	return effect
}

// updateEvents returns those of an update. handsOver is whether a replacement receives the items.
func updateEvents(was *v1beta1.UpdateStatus, next v1beta1.MemcachedStatus, handsOver bool) []event.Event {
	var events []event.Event
	now := next.Update
	if now == nil {
		if was != nil && was.IsFinished(&next) {
			message := fmt.Sprintf("updated %d shards to image %s", len(next.Shards), next.Image)
			if was.ItemsBefore > 0 {
				message += "; " + keptItems(was)
			}
			if cost := next.LastUpdate; cost != nil && cost.Revision == was.Revision {
				message += "; " + costMessage(cost)
			}
			events = append(events, event.Normal(v1beta1.EventUpdateFinished, "%s", message))
		}
		return events
	}
	if was == nil || was.Revision != now.Revision {
		events = append(events, event.Normal(v1beta1.EventUpdateStarted, "%s", now.Message))
	}
	isFirst := was == nil || was.Revision != now.Revision || was.Shard != now.Shard
	if now.Method == v1beta1.UpdateReplace && !handsOver && (isFirst || was.Method != now.Method) {
		events = append(events, event.Warning(v1beta1.EventEmptyStartAnnounced, "replacing shard %s; it will start empty: %s", now.Shard, now.Message))
	}
	if now.IsRolledBack() && (isFirst || !was.IsRolledBack()) {
		events = append(events, event.Warning(v1beta1.EventShardRolledBack, "shard %s: %s", now.Shard, now.Message))
	}
	return events
}

func bootstrapEvents(was, now *v1beta1.BootstrapStatus) []event.Event {
	const running = v1beta1.TransferRunning
	if was == nil || was.Phase != running || now == nil || now.Phase == running {
		return nil
	}
	kind := corev1.EventTypeNormal
	if now.Phase == v1beta1.TransferFailed {
		kind = corev1.EventTypeWarning
	}
	return []event.Event{{Type: kind, Reason: v1beta1.EventBootstrapFinished, Message: cmp.Or(now.Message, string(now.Phase))}}
}

// refillEvents returns the events of the shards that were lost.
func refillEvents(obs *observation.Observation, refills []plan.Refill, res plan.Result) []event.Event {
	var events []event.Event
	for _, r := range refills {
		if !refillPending(obs, refills, r.Shard, res) {
			events = append(events, r.Event)
		}
	}
	return events
}
