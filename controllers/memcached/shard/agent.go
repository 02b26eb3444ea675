package shard

import (
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
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
	agent.Version = text.Truncate(agent.Version, v1beta1.MaxVersion)
	agent.Start.Reason = text.Truncate(agent.Start.Reason, v1beta1.MaxMessage)
	agent.ArgumentsError = text.Truncate(agent.ArgumentsError, v1beta1.MaxMessage)
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
	if agent.Scaling != nil {
		s := *agent.Scaling
		for _, n := range []*int64{&s.Moved, &s.Total, &s.Deleted, &s.Purged, &s.PurgedBytes} {
			*n = bounded(*n, maxCount)
		}
		s.StaleSeconds = bounded(s.StaleSeconds, maxSeconds)
		s.Problem, s.Error = text.Truncate(s.Problem, maxSecretMessage), text.Truncate(s.Error, maxSecretMessage)
		agent.Scaling = &s
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

// report is what is known of the agent in a shard's active pod.
type report struct {
	// agent is the answer; nil without one. Then retry is the least time after which to query the agent again.
	agent *agentwire.Status
	retry time.Duration
	// start is how memcached started last, and restart with which restart annotation: by the answer, or by the status.
	start   v1beta1.StartResult
	restart string
	// secrets is what the agent reported last of its Secrets; nil while it is unknown.
	secrets *agentwire.Secrets
}

// reportOf returns what is known of the agent in the active pod.
func (in Inputs) reportOf(o *Observation) report {
	r := report{start: o.Last.StartResult, restart: o.Last.RestartAnnotation, retry: o.AgentRetry(in.Now)}
	if agent, ok := in.Agents[o.Active.Name]; ok {
		r.retry, r.agent, r.start, r.restart = 0, &agent, v1beta1.StartResult(agent.Start.Result), RestartInStatus(agent.Restart)
	}
	if secrets, ok := in.Secrets[o.Active.UID]; ok {
		r.secrets = &secrets
	}
	return r
}

// certificate returns what the agent reported last of its certificate.
func (r report) certificate() agentwire.Certificate {
	if r.secrets == nil {
		return agentwire.Certificate{}
	}
	return r.secrets.Certificate
}

const (
	// agentGrace is how long an agent may be unreachable before manual intervention is required.
	agentGrace = 5 * time.Minute
	// AgentRetryMin and maxAgentRetry are the times after which an agent that doesn't answer is queried again, at the least and at the most.
	AgentRetryMin, maxAgentRetry = time.Second, 30 * time.Second
)

// AgentBackoff returns after which time to query an agent again that hasn't answered for a time: the longer, the later.
func AgentBackoff(silence time.Duration) time.Duration {
	return min(max(silence/4, AgentRetryMin), maxAgentRetry)
}

// AgentUnreachableTime returns since when the agent of a pod has been unreachable. last is the
// shard's previous status.
func AgentUnreachableTime(last v1beta1.ShardStatus, podName string, now time.Time) *metav1.Time {
	if last.AgentUnreachableTime != nil && last.PodName == podName {
		return last.AgentUnreachableTime
	}
	return ptr.To(v1beta1.Time(now))
}

// AgentRetry returns the least time after which to query the active pod's agent again, if it was unreachable and doesn't answer now either.
func (o *Observation) AgentRetry(now time.Time) time.Duration {
	if o.Active == nil || o.Last.AgentUnreachableTime == nil {
		return 0
	}
	return AgentBackoff(now.Sub(AgentUnreachableTime(o.Last, o.Active.Name, now).Time))
}

// AgentProblem returns which shard's agent has been unreachable for too long, or nil.
func AgentProblem(shards []v1beta1.ShardStatus, now time.Time) *Problem {
	for _, s := range shards {
		if since := s.AgentUnreachableTime; since != nil && now.Sub(since.Time) >= agentGrace {
			return &Problem{v1beta1.ReasonAgentUnreachable, fmt.Sprintf(
				"shard %s: the agent in pod %s hasn't answered since %s; let the operator's pods connect to its TCP port %d: "+
					"check the NetworkPolicies and the service mesh", s.Name, s.PodName, since.UTC().Format("15:04 MST on 2 January"), agentwire.Port)}
		}
	}
	return nil
}
