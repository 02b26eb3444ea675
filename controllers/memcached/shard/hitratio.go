package shard

import (
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/serverclock"
)

// HitRatioTimeout is how long after an update the agents of all its shards are queried until the hit ratio is back: the
// memcached of each shard counts the misses.
const HitRatioTimeout = 30 * time.Minute

// MeasuresHitRatio reports whether the misses of an update that is finished are yet to be measured.
func MeasuresHitRatio(cost *v1beta1.UpdateCost, now time.Time) bool {
	return cost != nil && cost.CompletionTime != nil && cost.ExtraMisses == nil &&
		serverclock.Age(now, cost.CompletionTime.Time) < HitRatioTimeout
}

// HadHitRatio reports whether the shard was updated to the revision and had enough lookups before.
func (o *Observation) HadHitRatio(revision string) bool {
	return o.Active != nil && o.IsReady && o.Record != nil && o.Record.Revision == revision && o.Record.Method > rollout.Live &&
		o.Record.Gets >= v1beta1.DefaultHitRatioMinRequests
}

// ExtraMisses returns how many more keys were not found since the shard's start than with the hit ratio
// before its update, and whether that is back. It is unknown after a client reset the statistics.
func (s *State) ExtraMisses() (misses float64, recovered, known bool) {
	if s.Agent.Gets < s.Agent.RecentGets {
		return 0, false, false
	}
	before := float64(s.Record.Hits) / float64(s.Record.Gets)
	misses = max(before*float64(s.Agent.Gets)-float64(s.Agent.Hits), 0)
	recovered = s.Agent.RecentGets >= v1beta1.DefaultHitRatioMinRequests &&
		float64(s.Agent.RecentHits) >= before*float64(s.Agent.RecentGets)*v1beta1.DefaultHitRatioPercent/100
	return misses, recovered, true
}
