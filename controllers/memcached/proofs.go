package memcached

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// proveAgain is how long a proof that failed is left to be looked at before
// another one is tried.
const proveAgain = 5 * time.Minute

// planProofs finds out on which nodes the target's image is to be proven, and how
// far that is: the kubelet ends the container that runs before it pulls another
// image, so an image that it cannot pull or run must be known before.
func (p *plan) planProofs(seen *observed, options manifests.Options) {
	m := seen.memcached
	have := map[string]*corev1.Pod{}
	for _, pod := range seen.proofs {
		have[pod.Name] = pod
	}
	progress, why := rollout.Done, ""
	worst := func(to rollout.Progress, sentence string) {
		order := []rollout.Progress{rollout.Done, rollout.Underway, rollout.Needed, rollout.Refused}
		if slices.Index(order, to) > slices.Index(order, progress) {
			progress, why = to, sentence
		}
	}
	for _, s := range p.shards {
		if s.pod == nil || s.pod.Spec.NodeName == "" || s.Forward.Class != rollout.Recreate || s.Pod.Revision == p.target.Revision() {
			continue
		}
		proof, err := manifests.Proof(m, s.pod, p.target, attemptOf(m), options)
		if err != nil {
			p.refused = &problem{v1alpha1.ReasonApplyRefused, err.Error()}
			return
		}
		pod, exists := have[proof.Key.Name]
		if !exists {
			worst(rollout.Needed, fmt.Sprintf("proving image %s on node %s", p.image.Reference, s.pod.Spec.NodeName))
			if !slices.ContainsFunc(p.proofs, func(o manifests.Object) bool { return o.Key == proof.Key }) {
				p.proofs = append(p.proofs, proof)
			}
			continue
		}
		to, trouble := proofOf(pod, p.image.Version)
		if trouble != nil && p.unproven == nil {
			p.unproven = trouble
		}
		sentence := fmt.Sprintf("proving image %s on node %s", p.image.Reference, pod.Spec.NodeName)
		if trouble != nil {
			sentence = fmt.Sprintf("on node %s, where no shard was touched: %s", pod.Spec.NodeName, trouble.message)
		}
		worst(to, sentence)
	}
	for i := range p.shards {
		if p.shards[i].Forward.Class == rollout.Recreate {
			p.shards[i].Forward.Proof, p.shards[i].Forward.ProofWhy = progress, why
		}
	}
}

// planProofDeletes finds the proofs that have served their purpose, and those that
// are to be tried again.
func (p *plan) planProofDeletes(seen *observed) {
	for _, pod := range seen.proofs {
		if pod.DeletionTimestamp != nil {
			continue
		}
		served := p.decision.Done() || pod.Annotations[v1alpha1.AnnotationRevision] != p.target.Revision()
		left := proveAgain - seen.now.Sub(pod.CreationTimestamp.Time)
		failed := pod.Status.Phase == corev1.PodFailed
		switch {
		case served || failed && left <= 0:
			p.deletes = append(p.deletes, pod)
		case failed:
			p.lookAfter(left)
		}
	}
}

// proofOf returns how far a proof is, and why it failed. version is that which the
// image should hold, empty when its reference does not say.
func proofOf(pod *corev1.Pod, version string) (rollout.Progress, *problem) {
	said := ""
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			said = strings.TrimSpace(c.State.Terminated.Message)
		}
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		var proof agentapi.Proof
		if json.Unmarshal([]byte(said), &proof) != nil || proof.Version == "" {
			return rollout.Refused, &problem{v1alpha1.ReasonImageUnusable, "the proof ended without telling memcached's version"}
		}
		if version != "" && proof.Version != version {
			return rollout.Refused, &problem{v1alpha1.ReasonVersionMismatch,
				fmt.Sprintf("the image holds memcached %s, not %s as it says", proof.Version, version)}
		}
		return rollout.Done, nil
	case corev1.PodFailed:
		return rollout.Refused, &problem{v1alpha1.ReasonImageUnusable, cmp.Or(said, pod.Status.Message, pod.Status.Reason, troubleOf(pod), "the proof failed")}
	}
	if trouble := podTrouble(pod); trouble != nil {
		return rollout.Refused, trouble
	}
	return rollout.Underway, nil
}

func troubleOf(pod *corev1.Pod) string {
	if trouble := podTrouble(pod); trouble != nil {
		return trouble.message
	}
	return ""
}
