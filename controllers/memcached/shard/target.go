package shard

import (
	"fmt"
	"slices"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
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

// templateTarget returns the target that the shard's next pod has.
func (o *Observation) templateTarget() Target {
	t := Target{Revision: o.Template}
	if o.MoveStarted {
		t.MovedPod = o.Active.Name
	}
	return t
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
func targetOf(o *Observation, agent *agentwire.Status, pod rollout.Pod, in Inputs) Target {
	t := Target{Revision: in.Update}
	switch {
	case o.MoveStarted && o.Template.Hash() == in.Update.Hash():
		t.MovedPod = o.Active.Name
	case !in.acceptsRequests || pod.State == rollout.Broken:
	case o.MoveRequested:
		t.MovedPod = o.Active.Name
	case pod.Outcome != rollout.Cold:
		t.Restart = restartFor(o, agent, in.Secrets[o.Active.UID].Certificate)
	}
	return t
}

// onlyMoves reports whether a pod with the target differs from the active one in nothing but its node.
func (t Target) onlyMoves(o *Observation) bool {
	return t.MovedPod != "" && o.PodRevision.Hash() == t.Revision.Hash()
}

// moveRequest returns the request to replace the active pod by one on another node.
func moveRequest(o *Observation, handsOver bool) *request {
	r := &request{method: rollout.Replace, reason: "moves from node " + o.Active.Spec.NodeName + " to another one with its items"}
	if !handsOver && !o.MoveStarted {
		r.forbidden = fmt.Sprintf("pod %s can't hand over its items, so it isn't moved; remove the annotation %s, or delete the pod to move the shard without its items",
			o.Active.Name, v1alpha1.AnnotationMove)
	}
	return r
}
