package shard

import (
	"fmt"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// expiringShare is the share of a certificate's lifetime that is left when it should have been renewed:
// cert-manager does so when a third is left.
const expiringShare = 6

// CertificateProblem returns what requires manual intervention for a pod's certificate of a Secret, or nil.
func CertificateProblem(c agentwire.Certificate, secret string, now time.Time) *Problem {
	left, serves := c.NotAfter.Sub(now), c.SHA256 != ""
	expiring := func(verb string) *Problem {
		return &Problem{v1beta1.ReasonCertificateExpiring, fmt.Sprintf("the certificate %s at %s; renew it in Secret %s", verb, c.NotAfter.UTC().Format(time.RFC3339), secret)}
	}
	switch {
	case serves && left <= 0 && c.Error != "":
		return &Problem{v1beta1.ReasonCertificateExpiring, fmt.Sprintf("the certificate expired at %s, and that in Secret %s can't be used: %s; correct the Secret", c.NotAfter.UTC().Format(time.RFC3339), secret, c.Error)}
	case serves && left <= 0:
		return expiring("expired")
	case c.Error != "":
		return &Problem{v1beta1.ReasonSecretInvalid, fmt.Sprintf("%s; correct Secret %s", c.Error, secret)}
	case serves && left < c.NotAfter.Sub(c.NotBefore)/expiringShare:
		return expiring("expires")
	default:
		return nil
	}
}
