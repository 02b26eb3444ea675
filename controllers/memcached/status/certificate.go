package status

import (
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
)

// tlsStatus returns what the agents report of the certificate; nil without TLS. It keeps what no agent has
// reported yet to this operator, and what is known of plain connections until all have: a user waits until there are none.
func tlsStatus(obs *observation.Observation) *v1beta1.TLSStatus {
	tls, was := obs.Memcached.Spec.TLS, obs.Memcached.Status.TLS.DeepCopy()
	if !tls.IsEnabled() {
		return nil
	}
	s := &v1beta1.TLSStatus{}
	plain, last, isComplete, allCount := int64(0), time.Time{}, true, true
	for i := range obs.Shards {
		pod := obs.Shards[i].Active
		if pod == nil {
			continue
		}
		secrets, known := obs.Secrets[pod.UID]
		c := secrets.Certificate
		plain, isComplete, allCount = plain+c.PlainConnections, isComplete && known, allCount && !c.LastPlainConnection.IsZero()
		if c.LastPlainConnection.After(last) {
			last = c.LastPlainConnection
		}
		if c.SHA256 == "" || s.NotAfter != nil && (c.NotAfter.After(s.NotAfter.Time) || c.NotAfter.Equal(s.NotAfter.Time) && c.SHA256 >= s.Fingerprint) {
			continue
		}
		at := v1beta1.Time(c.NotAfter)
		s.NotAfter, s.Fingerprint = &at, c.SHA256
	}
	if s.NotAfter == nil && was != nil {
		s.NotAfter, s.Fingerprint = was.NotAfter, was.Fingerprint
	}
	if tls.Mode != v1beta1.TLSPermissive {
		return s
	}
	if was != nil {
		s.PlainConnections, s.LastPlainConnectionTime = was.PlainConnections, was.LastPlainConnectionTime
	}
	if isComplete {
		s.PlainConnections = &plain
	}
	if last.After(obs.Now) {
		last = obs.Now
	}
	// By the hour, so that clients that come and go don't cause a write to the status each minute.
	if at := v1beta1.Time(last.Truncate(time.Hour)); s.LastPlainConnectionTime == nil && allCount && !last.IsZero() || s.LastPlainConnectionTime.Before(&at) {
		s.LastPlainConnectionTime = &at
	}
	return s
}
