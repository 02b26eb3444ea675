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
		return &Problem{v1alpha1.ReasonCertificateInvalid, fmt.Sprintf("%s; correct Secret %s", c.Error, secret)}
	case serves && left < c.NotAfter.Sub(c.NotBefore)/expiringShare:
		return expiring("expires")
	default:
		return nil
	}
}

// certificateError returns why a pod can't use its certificate; empty if it can.
func (in Inputs) certificateError(pod *corev1.Pod) string {
	c, known := in.Certificates[pod.UID]
	if !known {
		return "the agent hasn't reported yet whether it can use the certificate"
	}
	return c.Error
}

// mountsSecret reports whether a pod has the certificate that a revision requires.
func (in Inputs) mountsSecret(pod *corev1.Pod, to resources.PodRevision) bool {
	return to.Spec.TLS == nil || resources.MountedTLSSecret(pod) == v1alpha1.TLSSecretName(in.Memcached.Name, to.Spec.TLS)
}

// restart determines whether memcached restarts in its pod to use another certificate, or still does. It
// restarts once for each certificate.
func (s *State) restart(in Inputs) {
	c := in.Certificates[s.Active.UID]
	if c.RestartRequired == "" || c.Offered == "" || s.Active.DeletionTimestamp != nil || s.PodRevision.Hash() != in.Update.Hash() || s.Template.Hash() != in.Update.Hash() {
		return
	}
	token := "certificate-" + c.Offered[:min(len(c.Offered), 8)]
	isPending := s.Agent == nil && !s.StartRecorded
	if s.Active.Annotations[v1alpha1.AnnotationRestart] != token {
		s.RestartToken, s.Rollout.Restarts = token, true
	} else if isPending {
		s.Rollout.Restarts = true
	}
}
