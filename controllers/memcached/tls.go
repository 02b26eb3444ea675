package memcached

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// The operator can't read the Secret with the certificate, so the agents report what they do with it. No
// watch announces that, so that the operator queries them again and again while spec.tls is set.
const (
	// certificateInterval is the age at which the report of an agent is read again.
	certificateInterval = time.Minute
	// certificateQueries is how many agents are queried for it at a time.
	certificateQueries = 32
)

// certificatePods returns the pods whose report is due.
func certificatePods(obs *observation) (due []*corev1.Pod) {
	if obs.memcached.Spec.TLS == nil {
		return nil
	}
	for i := range obs.shards {
		s := &obs.shards[i]
		if !s.IsReady || s.Active.Status.PodIP == "" || resources.MountedTLSSecret(s.Active) == "" || obs.now.Sub(obs.certificates[s.Active.UID].ReadAt).Abs() < certificateInterval {
			continue
		}
		if due = append(due, s.Active); len(due) == certificateQueries {
			break
		}
	}
	return due
}

// readCertificates takes over the answers of the agents, and forgets the pods that no longer host a shard.
func (obs *observation) readCertificates() {
	known := map[types.UID]agentwire.Certificate{}
	for i := range obs.shards {
		pod := obs.shards[i].Active
		if pod == nil || obs.memcached.Spec.TLS == nil {
			continue
		}
		if last, ok := obs.certificates[pod.UID]; ok {
			known[pod.UID] = last
		}
		if agent, ok := obs.agents[pod.Name]; ok && agent.Certificate != nil {
			latest := *agent.Certificate
			latest.ReadAt = obs.now
			known[pod.UID] = latest
		}
	}
	if !maps.Equal(obs.certificates, known) { // without spec.tls, it remains nil
		obs.certificates = known
	}
}

// planCertificates reads the next report when it is due.
func planCertificates(obs *observation) Actions {
	if obs.memcached.Spec.TLS == nil {
		return Actions{}
	}
	after := certificateInterval
	for i := range obs.shards {
		s := &obs.shards[i]
		if !s.IsReady || resources.MountedTLSSecret(s.Active) == "" || obs.unreachable[s.Active.Name] {
			continue
		}
		if left := certificateInterval - obs.now.Sub(obs.certificates[s.Active.UID].ReadAt).Abs(); left < after {
			after = max(left, agentRetryMin)
		}
	}
	return Actions{RequeueAfter: after}
}

// tlsStatus returns what the agents report of the certificate; nil without spec.tls.
func tlsStatus(obs *observation) *v1alpha1.TLSStatus {
	tls := obs.memcached.Spec.TLS
	if tls == nil {
		return nil
	}
	s := &v1alpha1.TLSStatus{}
	var plain int64
	for _, c := range obs.certificates {
		plain += c.PlainConnections
		if c.SHA256 == "" || s.NotAfter != nil && (c.NotAfter.After(s.NotAfter.Time) || c.NotAfter.Equal(s.NotAfter.Time) && c.SHA256 >= s.Fingerprint) {
			continue
		}
		at := v1alpha1.Time(c.NotAfter)
		s.NotAfter, s.Fingerprint = &at, c.SHA256
	}
	if was := obs.memcached.Status.TLS; s.NotAfter == nil && was != nil { // no agent has answered this operator yet
		s = was.DeepCopy()
	}
	s.PlainConnections = nil
	if tls.Mode == v1alpha1.TLSPermissive {
		s.PlainConnections = &plain
	}
	return s
}

// tlsProblem returns what requires manual intervention for a shard's certificate, or nil.
func tlsProblem(obs *observation) *shard.Problem {
	tls := obs.memcached.Spec.TLS
	if tls == nil {
		return nil
	}
	secret := v1alpha1.TLSSecretName(obs.memcached.Name, tls)
	for i := range obs.shards {
		s := &obs.shards[i]
		if s.Active == nil || resources.MountedTLSSecret(s.Active) != secret {
			continue
		}
		if problem := shard.CertificateProblem(obs.certificates[s.Active.UID], secret, obs.now); problem != nil {
			problem.Message = fmt.Sprintf("shard %s: %s", s.Name, problem.Message)
			return problem
		}
	}
	return nil
}
