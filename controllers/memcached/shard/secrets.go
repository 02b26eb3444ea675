package shard

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
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

// secretError returns why a pod can't change to a revision for lack of a Secret that it mounts; empty if it can. A Secret
// that the pod already uses matters only if another pod has to start with it.
func (in Inputs) secretError(pod *corev1.Pod, from, to resources.PodRevision, method rollout.Method) string {
	needs := func(from, to bool) bool { return to && (!from || method == rollout.Replace) }
	needsTLS := needs(from.Spec.TLS != nil, to.Spec.TLS != nil)
	needsUsers := needs(from.Spec.Auth != nil, to.Spec.Auth != nil)
	secrets, known := in.Secrets[pod.UID]
	switch {
	case !needsTLS && !needsUsers:
		return ""
	case !known:
		return "the agent hasn't reported yet whether it can use its Secrets"
	case needsTLS && secrets.Certificate.Error != "":
		return secrets.Certificate.Error
	case needsUsers:
		return secrets.Users.Error
	}
	return ""
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

// restartLostItems reports whether memcached lost its items when it restarted for the certificate that the Secret has. A
// later start has nothing to do with it, and that of another container is a later one if the status has the first.
func (s *State) restartLostItems(in Inputs) bool {
	start, restart := s.latestStart()
	r := s.Record
	return start == v1alpha1.StartCold && r != nil && r.Restart != "" && r.Restart == restart && r.Attempt == RetryToken(in.Memcached) &&
		(r.Container == s.ContainerID || s.Last.Restart != r.Restart) && in.stillOffers(s.Active, r.Restart)
}

// restart determines whether memcached restarts in its pod to use another certificate, or still does.
func (s *State) restart(in Inputs) {
	c := in.Secrets[s.Active.UID].Certificate
	if c.RestartRequired == "" || c.Offered == "" || s.Active.DeletionTimestamp != nil || s.PodRevision.Hash() != in.Update.Hash() || s.Template.Hash() != in.Update.Hash() {
		return
	}
	isPending := s.Agent == nil && !s.StartRecorded
	if token := CertificateRestart(s.Active, c); token != "" {
		s.RestartToken, s.Rollout.Restarts = token, true
	} else if isPending {
		s.Rollout.Restarts = true
	}
}
