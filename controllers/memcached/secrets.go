package memcached

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// The operator can't read the Secrets with the certificate and the users, so the agents report what they do with them. No
// watch announces that, so that the operator queries them again and again while spec.tls or spec.auth is set.
const (
	// secretsInterval is the age at which the report of an agent is read again.
	secretsInterval = time.Minute
	// secretsQueries is how many agents are queried for it at a time, in addition to those that are unreachable.
	secretsQueries = 32
)

func usesSecrets(m *v1alpha1.Memcached) bool { return m.Spec.TLS != nil || m.Spec.Auth != nil }

// age returns how old the report of a shard's agent is.
func (obs *observation) age(pod *corev1.Pod) time.Duration {
	return obs.now.Sub(obs.secrets[pod.UID].ReadAt).Abs()
}

// secretPods returns the pods whose report is due.
func secretPods(obs *observation) (due []*corev1.Pod) {
	if !usesSecrets(obs.memcached) {
		return nil
	}
	left := secretsQueries
	for i := 0; i < len(obs.shards) && left > 0; i++ {
		s := &obs.shards[i]
		if !s.IsReady || s.Active.Status.PodIP == "" || !resources.MountsSecrets(s.Active) || obs.age(s.Active) < secretsInterval {
			continue
		}
		if due = append(due, s.Active); s.Last.AgentUnreachableSince == nil {
			left--
		}
	}
	return due
}

// readSecrets takes over the answers of the agents, and forgets the pods that no longer host a shard.
func (obs *observation) readSecrets() {
	known := map[types.UID]agentwire.Secrets{}
	for i := range obs.shards {
		pod := obs.shards[i].Active
		if pod == nil || !usesSecrets(obs.memcached) {
			continue
		}
		if last, ok := obs.secrets[pod.UID]; ok {
			known[pod.UID] = last
		}
		if agent, ok := obs.agents[pod.Name]; ok && agent.Secrets != nil {
			latest := *agent.Secrets
			latest.ReadAt = obs.now
			known[pod.UID] = latest
		}
	}
	if !maps.Equal(obs.secrets, known) { // without Secrets, it remains nil
		obs.secrets = known
	}
}

// planSecrets reads the next report when it is due.
func planSecrets(obs *observation) Actions {
	if !usesSecrets(obs.memcached) {
		return Actions{}
	}
	after := secretsInterval
	for i := range obs.shards {
		s := &obs.shards[i]
		if s.IsReady && resources.MountsSecrets(s.Active) && !obs.unreachable[s.Active.Name] {
			after = min(after, max(secretsInterval-obs.age(s.Active), agentRetryMin))
		}
	}
	return Actions{RequeueAfter: after}
}
