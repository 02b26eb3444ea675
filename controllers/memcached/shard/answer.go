package shard

import (
	"math"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

const (
	maxSecretMessage = 512
	maxFingerprint   = 64
	// maxCount bounds numbers, and maxSeconds durations, so that the sums of all shards fit into
	// an int64, those of durations as nanoseconds.
	maxCount   = 1 << 53
	maxSeconds = 90 * 24 * 60 * 60
)

// Bounded returns an agent's answer with values that a status, a record and a metric can contain.
// The agent may be newer than the operator, and any program may answer in a pod.
func Bounded(agent agentwire.Status) agentwire.Status {
	switch agent.Start.Result {
	case agentwire.StartWarm, agentwire.StartCold, agentwire.StartHandedOver:
	default:
		agent.Start.Result = ""
	}
	if agent.Start.Mode != agentwire.ModeAvailable {
		agent.Start.Mode = agentwire.ModeStrict
	}
	agent.Version = text.Truncate(agent.Version, v1alpha1.MaxVersion)
	agent.Start.Reason = text.Truncate(agent.Start.Reason, v1alpha1.MaxMessage)
	agent.ArgumentsError = text.Truncate(agent.ArgumentsError, v1alpha1.MaxMessage)
	for _, n := range []*int64{
		&agent.Start.Items, &agent.Start.ItemsBefore, &agent.Items, &agent.Bytes, &agent.MaxBytes, &agent.CurrConnections,
		&agent.UptimeSeconds, &agent.RecentGets, &agent.RecentHits, &agent.Gets, &agent.Hits,
	} {
		*n = bounded(*n, maxCount)
	}
	for _, seconds := range []*float64{&agent.Start.HandoverSeconds, &agent.Start.GapSeconds, &agent.Start.UnavailableSeconds, &agent.Start.StaleSeconds} {
		*seconds = bounded(*seconds, maxSeconds)
	}
	agent.PID, agent.HandoverPort = bounded(agent.PID, math.MaxInt32), bounded(agent.HandoverPort, math.MaxInt32)
	if agent.Handover != nil {
		p := *agent.Handover
		p.Pass, p.Items, p.Total = bounded(p.Pass, math.MaxInt32), bounded(p.Items, maxCount), bounded(p.Total, maxCount)
		agent.Handover = &p
	}
	if agent.Secrets != nil {
		secrets := *agent.Secrets
		c := &secrets.Certificate
		c.Error = text.Truncate(c.Error, maxSecretMessage)
		c.RestartRequired = text.Truncate(c.RestartRequired, maxSecretMessage)
		c.SHA256, c.Offered = text.Truncate(c.SHA256, maxFingerprint), text.Truncate(c.Offered, maxFingerprint)
		c.PlainConnections = bounded(c.PlainConnections, maxCount)
		secrets.Users.Error = text.Truncate(secrets.Users.Error, maxSecretMessage)
		agent.Secrets = &secrets
	}
	return agent
}

func bounded[T int | int64 | float64](n, limit T) T { return min(max(n, 0), limit) }
