package shard

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// expiringShare is the share of a certificate's lifetime that is left when it should have been renewed:
// cert-manager does so when a third is left.
const expiringShare = 6

// CertificateProblem returns what requires manual intervention for a pod's certificate of a Secret, or nil.
func CertificateProblem(c agentwire.Certificate, secret string, now time.Time) *Problem {
	left, serves := c.NotAfter.Sub(now), c.SHA256 != ""
	expiring := func(verb string) *Problem {
		return &Problem{v1alpha1.ReasonCertificateExpiring, fmt.Sprintf("the certificate %s at %s; renew it in Secret %s", verb, c.NotAfter.UTC().Format(time.RFC3339), secret)}
	}
	switch {
	case serves && left <= 0:
		return expiring("expired")
	case c.Error != "":
		return &Problem{v1alpha1.ReasonSecretInvalid, fmt.Sprintf("%s; correct Secret %s", c.Error, secret)}
	case serves && left < c.NotAfter.Sub(c.NotBefore)/expiringShare:
		return expiring("expires")
	default:
		return nil
	}
}

// mountsSecrets reports whether a pod has the Secrets that a revision requires.
func (in Inputs) mountsSecrets(pod *corev1.Pod, to resources.PodRevision) bool {
	name := in.Memcached.Name
	return (to.Spec.TLS == nil || resources.MountsTLS(pod, v1alpha1.TLSSecretName(name, to.Spec.TLS))) &&
		(to.Spec.Auth == nil || resources.MountsUsers(pod, v1alpha1.AuthSecretName(name, to.Spec.Auth)))
}

// CertificateRestart returns the value of the restart annotation that a pod gets to use another certificate; empty
// if it gets none, or has it. It restarts once for each certificate.
func CertificateRestart(pod *corev1.Pod, c agentwire.Certificate) string {
	if c.RestartRequired == "" || c.Offered == "" {
		return ""
	}
	token := certificateToken(c)
	if pod.Annotations[v1alpha1.AnnotationRestart] == token {
		return ""
	}
	return token
}

func certificateToken(c agentwire.Certificate) string {
	return "certificate-" + c.Offered[:min(len(c.Offered), 8)]
}

// stillOffers reports whether the Secret of a pod still has the certificate for which memcached restarted with a token,
// as far as it is known. An empty token is that of another update.
func (in Inputs) stillOffers(pod *corev1.Pod, token string) bool {
	if pod == nil || token == "" {
		return true
	}
	c := in.Secrets[pod.UID].Certificate
	return c.Offered == "" || certificateToken(c) == token
}

// restartFor returns the restart annotation with which memcached uses another certificate in its pod, until it has
// started with it; empty if none is required.
func restartFor(o *Observation, agent *agentwire.Status, c agentwire.Certificate) string {
	isPending := agent == nil && !o.StartRecorded
	if c.RestartRequired == "" || c.Offered == "" || o.Active.DeletionTimestamp != nil || CertificateRestart(o.Active, c) == "" && !isPending {
		return ""
	}
	return certificateToken(c)
}
