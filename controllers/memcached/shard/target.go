package shard

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Target is what a shard's pod has to become: the revision of the spec and, once all shards have it, what is
// requested of this shard alone. A request is part of the target until it is met, so that nothing has to remember it.
type Target struct {
	Revision resources.PodRevision
	// Restart is the restart annotation with which memcached uses another certificate, and MovedPod the pod
	// that is replaced by one on another node; empty for none.
	Restart, MovedPod string
}

// Hash identifies the target.
func (t Target) Hash() string {
	hash := t.Revision.Hash()
	if t.MovedPod != "" {
		hash += ", not on the node of " + t.MovedPod
	}
	if t.Restart != "" {
		hash += ", restarted with " + t.Restart
	}
	return hash
}

// hasRevision reports whether the shard's pod and its next one have a revision.
func (o *Observation) hasRevision(r resources.PodRevision) bool {
	return o.Template.Hash() == r.Hash() && (o.Active == nil || o.PodRevision.Hash() == r.Hash())
}

// allHave reports whether all shards have a revision.
func allHave(shards []Observation, r resources.PodRevision) bool {
	return !slices.ContainsFunc(shards, func(o Observation) bool { return !o.hasRevision(r) })
}

// targetOf returns what the active pod has to become. Requests wait while the pod is broken, and a restart until a loss
// of the items in the update is recorded, which is not known afterwards.
func targetOf(o *Observation, r report, pod rollout.Pod, in Inputs) Target {
	t := Target{Revision: in.Update}
	switch {
	case o.MoveStarted && o.Template.Hash() == in.Update.Hash():
		t.MovedPod = o.Active.Name
	case !in.acceptsRequests || pod.State == rollout.Broken:
	case o.MoveRequested:
		t.MovedPod = o.Active.Name
	case pod.Outcome != rollout.Cold:
		t.Restart = restartFor(o, r)
	}
	return t
}

// onlyMoves reports whether a pod with the target differs from the active one in nothing but its node.
func (t Target) onlyMoves(o *Observation) bool {
	return t.MovedPod != "" && o.PodRevision.Hash() == t.Revision.Hash()
}

// failure returns why the current attempt of the update failed; empty if it hasn't.
func failure(o *Observation, r report, in Inputs) string {
	f := o.Failure
	if f == nil || f.Revision != in.Update.Hash() || f.Attempt != in.attempt || !r.stillOffers(f.Restart) {
		return ""
	}
	return f.Message
}

// stillOffers reports whether the Secret still has the certificate for which memcached restarted with a token,
// as far as it is known. An empty token is that of another update.
func (r report) stillOffers(token string) bool {
	c := r.certificate()
	return token == "" || c.Offered == "" || certificateToken(c) == token
}

// restartFor returns the restart annotation with which memcached uses another certificate in its pod, until it has
// started with it; empty if none is required.
func restartFor(o *Observation, r report) string {
	c, isPending := r.certificate(), r.agent == nil && !o.StartRecorded
	if c.RestartRequired == "" || c.Offered == "" || o.Active.DeletionTimestamp != nil || CertificateRestart(o.Active, c) == "" && !isPending {
		return ""
	}
	return certificateToken(c)
}

// CertificateRestart returns the value of the restart annotation that a pod gets to use another certificate; empty
// if it gets none, or has it. It restarts once for each certificate.
func CertificateRestart(pod *corev1.Pod, c agentwire.Certificate) string {
	if c.RestartRequired == "" || c.Offered == "" {
		return ""
	}
	token := certificateToken(c)
	if pod.Annotations[v1beta1.AnnotationRestart] == token {
		return ""
	}
	return token
}

func certificateToken(c agentwire.Certificate) string {
	return "certificate-" + c.Offered[:min(len(c.Offered), 8)]
}
