package status

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// updateCost returns what the last update cost. A shard adds its part in the status that
// reports its start with the update revision first.
func updateCost(obs *observation.Observation, p plan.Plan, next *v1beta1.MemcachedStatus, now time.Time) *v1beta1.UpdateCost {
	was, update := &obs.Memcached.Status, obs.UpdateRevision.Hash()
	cost := was.LastUpdate.DeepCopy()
	for i := range p.Shards {
		s := &p.Shards[i]
		if s.Agent == nil || !s.IsUpdatedTo(update) {
			continue
		}
		last, _ := shard.StatusOf(was, s.Name)
		started, _ := shard.StatusOf(next, s.Name)
		if last.StartResult == "" || last.Revision == update || started.Revision != update {
			continue
		}
		if cost == nil || cost.Revision != update || cost.CompletionTime != nil {
			cost = &v1beta1.UpdateCost{Revision: update, StartTime: v1beta1.Time(s.Record.At)}
		}
		addStart(cost, s.Agent.Start, s.Record.Items)
	}
	if cost == nil || cost.Revision != update {
		return cost
	}
	if cost.CompletionTime == nil && isFinished(next, update, len(obs.Names)) {
		cost.CompletionTime = ptr.To(metav1.NewTime(now.Truncate(time.Second)))
	}
	if shard.MeasuresHitRatio(cost, obs.Now) {
		measureHitRatio(cost, p.Shards, now)
	}
	return cost
}

// addStart adds a shard's start. Without a handover, a new pod doesn't know how many items the
// former one contained.
func addStart(cost *v1beta1.UpdateCost, start agentwire.Start, recorded int64) {
	before := cmp.Or(start.ItemsBefore, recorded, start.Items)
	unavailable := int64(start.UnavailableSeconds * 1000)
	cost.Shards++
	cost.ItemsBefore += before
	cost.Items += min(start.Items, before)
	cost.UnavailableMilliseconds += unavailable
	cost.MaxUnavailableMilliseconds = max(cost.MaxUnavailableMilliseconds, unavailable)
}

// isFinished reports whether all shards match the spec and their starts are known.
func isFinished(s *v1beta1.MemcachedStatus, revision string, size int) bool {
	for i := range s.Shards {
		if !s.Shards[i].UpToDate || s.Shards[i].Revision != revision {
			return false
		}
	}
	return s.Update == nil && len(s.Shards) == size
}

// measureHitRatio sets the misses when the hit ratio of each shard is back, or will not be in time.
func measureHitRatio(cost *v1beta1.UpdateCost, shards []shard.State, now time.Time) {
	var sum float64
	measured, allRecovered := 0, true
	for i := range shards {
		s := &shards[i]
		if !s.HadHitRatio(cost.Revision) {
			continue
		}
		if s.Agent == nil {
			return // a later reconcile has its answer
		}
		if misses, recovered, known := s.ExtraMisses(); known {
			measured++
			sum += misses
			allRecovered = allRecovered && recovered
		}
	}
	isLast := now.Sub(cost.CompletionTime.Time) >= shard.HitRatioTimeout-2*plan.HitRatioPoll
	if measured == 0 || !allRecovered && !isLast {
		return
	}
	cost.ExtraMisses = ptr.To(int64(sum))
	if allRecovered {
		cost.HitRatioRecoveryTime = ptr.To(metav1.NewTime(now.Truncate(time.Second)))
	}
}

// costEvents returns the event of an update whose misses were measured.
func costEvents(was, now *v1beta1.UpdateCost) []event.Event {
	if now == nil || now.ExtraMisses == nil || was != nil && was.ExtraMisses != nil && was.Revision == now.Revision {
		return nil
	}
	caused := fmt.Sprintf("the update caused %s additional misses", text.Thousands(*now.ExtraMisses))
	if now.HitRatioRecoveryTime == nil {
		return []event.Event{event.Normal(v1beta1.EventHitRatioMeasured, "%s; the hit ratio had not recovered %.0fm after the update", caused, shard.HitRatioTimeout.Minutes())}
	}
	return []event.Event{event.Normal(v1beta1.EventHitRatioMeasured, "%s; the hit ratio recovered %s after the update started", caused, now.HitRatioRecoveryTime.Sub(now.StartTime.Time))}
}

// costMessage describes for how long shards were unavailable.
func costMessage(cost *v1beta1.UpdateCost) string {
	return fmt.Sprintf("unavailable for %s in total, for %s at most", milliseconds(cost.UnavailableMilliseconds), milliseconds(cost.MaxUnavailableMilliseconds))
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
