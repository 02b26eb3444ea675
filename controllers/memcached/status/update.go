package status

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// updateStatus returns the progress of a change of the spec, or nil when there is none. A rejected spec changes nothing: what a shard needs
// nevertheless is no update.
func updateStatus(obs *observation.Observation, p plan.Plan, s v1beta1.MemcachedStatus, now time.Time) *v1beta1.UpdateStatus {
	d := p.Decision
	if d.Done() || d.Step == rollout.StepRevert || obs.Rejected != nil {
		return nil
	}
	u := &v1beta1.UpdateStatus{
		Revision: obs.UpdateRevision.Hash(), Shard: d.Shard, Gate: v1beta1.Gate(d.Gate),
		Method: v1beta1.UpdateMethod(d.Change.Method.String()), RollingBack: d.RollingBack,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)), // the API stores seconds
	}
	position := 0
	for i, status := range s.Shards {
		if status.Name == d.Shard {
			position = i + 1
		}
	}
	u.Items, u.ItemsBefore = retainedItems(p.Shards, &s, u.Revision)
	message := updateMessage(d, len(s.Shards), position, obs.Now)
	if progress := handoverProgress(obs, d.Shard); progress != "" {
		message += "; " + progress
	}
	if u.ItemsBefore > 0 {
		message += "; " + keptItems(u)
	}
	u.Message = text.Truncate(message, v1beta1.MaxMessage)
	was := obs.Memcached.Status.Update
	if was != nil && was.Revision == u.Revision && was.Shard == u.Shard && was.Method == u.Method && was.RollingBack == u.RollingBack && was.Gate == u.Gate {
		u.LastTransitionTime = was.LastTransitionTime
	}
	return u
}

// updateMessage describes which shard is updated, what changes, and what blocks it.
func updateMessage(d rollout.Decision, shards, position int, now time.Time) string {
	message := fmt.Sprintf("shard %d of %d", position, shards)
	switch {
	case d.RollingBack:
		message += ": rolling back"
	case d.Step == rollout.StepAwait && d.Change.Resize == rollout.Underway:
		message += ": " + d.Message
	case d.Change.Description != "":
		message += ": " + d.Change.Description
	}
	if d.Gate != "" || d.RollingBack || d.NeedsIntervention {
		message += "; " + d.Message
	}
	if d.Gate == rollout.GateOutsideMaintenanceWindow {
		message += ", which opens at " + now.Add(d.RequeueAfter).UTC().Format("15:04 MST on Monday, 2 January")
	}
	return message
}

// retainedItems returns how many items the shards that were updated to the revision with their items
// contained before and after it.
func retainedItems(shards []shard.State, status *v1beta1.MemcachedStatus, revision string) (items, before int64) {
	for _, s := range shards {
		last, ok := shard.StatusOf(status, s.Name)
		if ok && s.IsUpdatedTo(revision) && last.Revision == revision &&
			(last.StartResult == v1beta1.StartWarm || last.StartResult == v1beta1.StartHandedOver) && last.ContainerID == shard.ContainerID(s.Active) {
			items, before = items+min(last.Items, last.ItemsBefore), before+cmp.Or(last.ItemsBefore, last.Items)
		}
	}
	return items, before
}

// keptItems describes how many items the updated shards kept.
func keptItems(u *v1beta1.UpdateStatus) string {
	return fmt.Sprintf("kept %s of %s items", text.Percent(u.Items, u.ItemsBefore), text.Thousands(u.ItemsBefore))
}
