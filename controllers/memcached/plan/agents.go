package plan

import (
	"time"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

const (
	// handoverRecheck is when to read the progress of a handover again.
	handoverRecheck = 5 * time.Second
	// HitRatioPoll is how often the agents are queried until the misses of an update are measured.
	HitRatioPoll = 10 * time.Second
)

// planSecretReports queries agents again when their next report of the Secrets is due.
func planSecretReports(obs *observation.Observation) Actions {
	if !observation.UsesSecrets(obs.Memcached) {
		return Actions{}
	}
	after := observation.SecretsInterval
	for i := range obs.Shards {
		s := &obs.Shards[i]
		if s.IsReady && resources.MountsSecrets(s.Active) && !obs.Unreachable[s.Active.Name] {
			after = min(after, max(observation.SecretsInterval-obs.SecretsAge(s.Active), shard.AgentRetryMin))
		}
	}
	return Actions{RequeueAfter: after}
}

// planAgentRetry queries agents again that did not answer, did not report the start yet, or receive
// items, and all of them until the misses of the last update are measured.
func planAgentRetry(obs *observation.Observation) Actions {
	var waits []time.Duration
	if len(observation.HitRatioPods(obs)) > 0 {
		waits = append(waits, HitRatioPoll)
	}
	for _, s := range obs.Shards {
		if s.Active == nil {
			continue
		}
		if pod := s.Receiver; pod != nil {
			wait := shard.AgentRetryMin // soon until it is ready for the items, as the operator deletes the other pod then
			if p := obs.Answers[pod.Name].Handover; p != nil && p.Pass > 0 {
				wait = handoverRecheck
			}
			waits = append(waits, wait)
		}
		_, answered := obs.Agents[s.Active.Name]
		starting := !s.StartRecorded && s.IsReady
		if obs.Unreachable[s.Active.Name] || starting && !answered {
			waits = append(waits, max(s.AgentRetry(obs.Now), shard.AgentRetryMin))
		}
	}
	return Actions{RequeueAfter: Soonest(waits...)}
}
