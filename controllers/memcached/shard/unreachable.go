package shard

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

const (
	// agentGrace is how long an agent may be unreachable before manual intervention is required.
	agentGrace = 5 * time.Minute
	// maxAgentRetry is the longest time after which an unreachable agent is queried again.
	maxAgentRetry = 30 * time.Second
)

// AgentUnreachableSince returns since when the agent of a pod has been unreachable. last is the
// shard's previous status.
func AgentUnreachableSince(last v1alpha1.ShardStatus, podName string, now time.Time) *metav1.Time {
	if last.AgentUnreachableSince != nil && last.PodName == podName {
		return last.AgentUnreachableSince
	}
	return ptr.To(v1alpha1.Time(now))
}

// AgentRetry returns the least time after which to query the active pod's agent again, if it
// doesn't answer now either: the longer it has been unreachable, the later.
func (o *Observation) AgentRetry(now time.Time) time.Duration {
	if o.Active == nil || o.Last.AgentUnreachableSince == nil {
		return 0
	}
	since := AgentUnreachableSince(o.Last, o.Active.Name, now)
	return min(now.Sub(since.Time)/4, maxAgentRetry)
}

// AgentProblem returns which shard's agent has been unreachable for too long, or nil.
func AgentProblem(shards []v1alpha1.ShardStatus, now time.Time) *Problem {
	for _, s := range shards {
		if since := s.AgentUnreachableSince; since != nil && now.Sub(since.Time) >= agentGrace {
			return &Problem{v1alpha1.ReasonAgentUnreachable, fmt.Sprintf(
				"shard %s: the agent in pod %s hasn't answered since %s; let the operator's pods connect to its TCP port %d: "+
					"check the NetworkPolicies and the service mesh", s.Name, s.PodName, since.UTC().Format("15:04 MST on 2 January"), agentwire.Port)}
		}
	}
	return nil
}
