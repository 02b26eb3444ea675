package observation

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/serverclock"
)

// The operator can't read the Secrets with the certificate and the users, so the agents report what they do with them. No
// watch announces that, so that the operator queries them again and again while spec.tls or spec.auth is set.

// SecretsInterval is the age at which the report of an agent is read again.
const SecretsInterval = time.Minute

// UsesSecrets reports whether the agents of a Memcached report what they do with Secrets.
func UsesSecrets(m *v1beta1.Memcached) bool {
	return m.Spec.TLS.IsEnabled() || m.Spec.Auth.IsRequired()
}

// SecretsAge returns how old the report of a shard's agent is.
func (obs *Observation) SecretsAge(pod *corev1.Pod) time.Duration {
	return serverclock.Age(obs.Now, obs.Secrets[pod.UID].ReadAt)
}

// secretPods returns the pods whose report is due.
func secretPods(obs *Observation) (due []*corev1.Pod) {
	if !UsesSecrets(obs.Memcached) {
		return nil
	}
	for i := range obs.Shards {
		s := &obs.Shards[i]
		if s.IsReady && s.Active.Status.PodIP != "" && resources.MountsSecrets(s.Active) && obs.SecretsAge(s.Active) >= SecretsInterval {
			due = append(due, s.Active)
		}
	}
	return due
}

// ReadSecrets takes over the answers of the agents, and forgets the pods that no longer host a shard.
func (obs *Observation) ReadSecrets() {
	known := map[types.UID]agentwire.Secrets{}
	for i := range obs.Shards {
		pod := obs.Shards[i].Active
		if pod == nil || !UsesSecrets(obs.Memcached) {
			continue
		}
		if last, ok := obs.Secrets[pod.UID]; ok {
			known[pod.UID] = last
		}
		if agent, ok := obs.Agents[pod.Name]; ok && agent.Secrets != nil {
			latest := *agent.Secrets
			latest.ReadAt = obs.Now
			known[pod.UID] = latest
		}
	}
	if !maps.Equal(obs.Secrets, known) { // without Secrets, it remains nil
		obs.Secrets = known
	}
}
