package plan

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/window"
)

// planRollout returns the next step of the rollout, and why no change of the spec reaches a shard;
// nil when it can.
func planRollout(obs *observation.Observation, shards []shard.State, checks preflight.Result) (rollout.Decision, *shard.Problem) {
	in := rolloutInput(obs, shards)
	in.Preflight, in.PreflightReason = checks.Progress, checks.Message
	if in.Invalid != "" {
		return rollout.Next(in), &shard.Problem{Reason: v1beta1.ReasonUpdateStrategyInvalid, Message: in.Invalid}
	}
	return rollout.Next(in), nil
}

// rolloutInput returns what the rollout decides by.
func rolloutInput(obs *observation.Observation, shards []shard.State) rollout.Input {
	m, strategy := obs.Memcached, &obs.Memcached.Spec.UpdateStrategy
	in := rollout.Input{
		Paused: m.Spec.Paused, Scaling: resources.ScalingOf(m) != nil, AllowItemLoss: strategy.OnItemLoss == v1beta1.ItemLossContinue,
		Shards: make([]rollout.Shard, 0, len(shards)), SinceUpdate: -1, MinPeriod: v1beta1.Seconds(strategy.MinPeriodSeconds, 0), RestoreRunning: activeRestore(obs),
	}
	known := resources.SizesOf(m).Known
	for _, s := range shards {
		s.Rollout.Unlisted = s.Ordinal >= known
		in.Shards = append(in.Shards, s.Rollout)
	}
	for ordinal, name := range obs.Names[:min(known, len(obs.Names))] {
		if ordinal == len(shards) || shards[ordinal].Ordinal != ordinal {
			in.MissingShard = name
			break
		}
	}
	last := shard.LastUpdated(shards)
	if last != nil {
		in.SinceUpdate = max(obs.Now.Sub(last.Record.At), 0)
	}
	in.Recovery = hitRatioRecovery(strategy.HitRatioGate, last, obs.UpdateRevision.Hash(), obs.Now)
	var err error
	if in.WindowOpensIn, err = window.OpensIn(strategy.MaintenanceWindows, obs.Now); err != nil {
		in.Invalid = err.Error()
	}
	return in
}

// hitRatioRecovery returns how the hit ratio of the shard that was updated last has
// recovered. It is nil when the gate doesn't apply: it isn't configured, the shard had too
// few requests before the update, or the update was long ago and to another revision, so that
// clients may request other keys by now.
func hitRatioRecovery(gate v1beta1.HitRatioGate, last *shard.State, target string, now time.Time) *rollout.Recovery {
	if !gate.IsEnabled() || last == nil {
		return nil
	}
	minRequests := int64(ptr.Deref(gate.MinRequests, v1beta1.DefaultHitRatioMinRequests))
	if last.Record.Gets < minRequests {
		return nil
	}
	r := &rollout.Recovery{
		Shard: last.Name, Before: float64(last.Record.Hits) / float64(last.Record.Gets),
		Share: float64(ptr.Deref(gate.Percent, v1beta1.DefaultHitRatioPercent)) / 100, MinRequests: minRequests,
		Waited: now.Sub(last.Record.At), Timeout: v1beta1.Seconds(gate.TimeoutSeconds, v1beta1.DefaultHitRatioTimeoutSeconds),
		Continue: gate.Mode == v1beta1.HitRatioGateContinue,
	}
	if last.Record.Revision != target && r.Waited >= r.Timeout {
		return nil
	}
	if last.Agent != nil && last.Agent.RecentGets > 0 {
		r.Requests, r.Now = last.Agent.RecentGets, float64(last.Agent.RecentHits)/float64(last.Agent.RecentGets)
	}
	return r
}
