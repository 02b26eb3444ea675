package status

import (
	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
)

// tlsStatus returns what the agents report of the certificate; nil without TLS. It keeps what no agent has
// reported yet to this operator, and the number of plain connections until all have: a user waits until it is 0.
func tlsStatus(obs *observation.Observation) *v1beta1.TLSStatus {
	tls, was := obs.Memcached.Spec.TLS, obs.Memcached.Status.TLS.DeepCopy()
	if !tls.IsEnabled() {
		return nil
	}
	s := &v1beta1.TLSStatus{}
	plain, isComplete := int64(0), true
	for i := range obs.Shards {
		pod := obs.Shards[i].Active
		if pod == nil {
			continue
		}
		secrets, known := obs.Secrets[pod.UID]
		c := secrets.Certificate
		plain, isComplete = plain+c.PlainConnections, isComplete && known
		if c.SHA256 == "" || s.NotAfter != nil && (c.NotAfter.After(s.NotAfter.Time) || c.NotAfter.Equal(s.NotAfter.Time) && c.SHA256 >= s.Fingerprint) {
			continue
		}
		at := v1beta1.Time(c.NotAfter)
		s.NotAfter, s.Fingerprint = &at, c.SHA256
	}
	if s.NotAfter == nil && was != nil {
		s.NotAfter, s.Fingerprint = was.NotAfter, was.Fingerprint
	}
	if tls.Mode == v1beta1.TLSPermissive && isComplete {
		s.PlainConnections = &plain
	} else if tls.Mode == v1beta1.TLSPermissive && was != nil {
		s.PlainConnections = was.PlainConnections
	}
	return s
}
