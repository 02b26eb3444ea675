package shard

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

const (
	// containerRestartGrace is how long a kubelet may take to recreate a container whose
	// image was changed, or to restart one that exited.
	containerRestartGrace = 10 * time.Second
	// argumentsReadGrace is how long an agent may take to read new arguments: the kubelet projects them within a
	// second, if need be the repeated ones, and the agent polls five times a second.
	argumentsReadGrace = 2 * AnnounceRetry
)

// activePod returns the state of the active pod and the outcome of its last update.
func activePod(o *Observation, r report, in Inputs) rollout.Pod {
	pod := o.activeState
	pod.Revision = o.PodRevision.Hash()
	pod.InPlace = o.OnPod != nil && o.OnPod.Revision == pod.Revision && o.OnPod.From == o.templateTarget.Hash() &&
		(o.OnSet == nil || o.OnSet.At.Before(o.OnPod.At))
	if pod.State == rollout.Broken && o.stopPending() && in.Now.Sub(o.Record.At) < containerRestartGrace {
		pod.State = rollout.Starting // the container that is broken is the previous one
	}
	if pod.State == rollout.Serving {
		pod.Outcome, pod.Reason = outcome(o, r, in)
	}
	return pod
}

// outcome returns the result of the last update of a pod that serves, and the reason of a bad one.
func outcome(o *Observation, r report, in Inputs) (rollout.Outcome, string) {
	record, revision, agent := o.Record, o.PodRevision.Hash(), r.agent
	isUnverified := record != nil && record.Revision == revision && record.Method > rollout.Live && revision != o.Template.Hash()
	switch {
	case o.stopPending(), o.restartPending(agent): // also after a rollback: what failed is still serving
		return rollout.Pending, ""
	case isUnverified && agent == nil, agent == nil && !o.StartRecorded:
		return rollout.Pending, ""
	case isUnverified:
		return restartOutcome(o, agent, in.Now)
	case o.replacementLostItems(r, in):
		return cold("memcached started empty in its new pod", agent, true)
	case o.restartLostItems(r, in):
		return cold("memcached started empty after its restart for a certificate", agent, false)
	}
	return rollout.Verified, ""
}

// restartOutcome returns the result of an update in place by what the agent reports.
func restartOutcome(o *Observation, agent *agentwire.Status, now time.Time) (rollout.Outcome, string) {
	switch version := o.PodRevision.Image.Version; {
	case version != "" && agent.Version != version:
		return rollout.Mismatched, "image " + o.PodRevision.Image.Reference + " contains memcached " + agent.Version
	case agent.ArgumentsError != "" && now.Sub(o.Record.At) > argumentsReadGrace:
		return rollout.Mismatched, agent.ArgumentsError
	case !o.runsWithArguments(agent):
		return rollout.Pending, ""
	case agent.Start.Result == agentwire.StartCold:
		return cold("memcached started empty", agent, false)
	}
	return rollout.Verified, ""
}

// cold returns the result of an update after which memcached started empty, in another pod or in that of its last start.
func cold(reason string, agent *agentwire.Status, moved bool) (rollout.Outcome, string) {
	if agent != nil {
		reason += ": " + ColdReason(agent.Start, moved)
	}
	return rollout.Cold, reason
}

// ColdReason returns why memcached started empty. The agent doesn't know whether the shard had another pod before.
func ColdReason(start agentwire.Start, moved bool) string {
	if moved && start.Reason == agentwire.FirstStart {
		return "the former pod had terminated before this one could start, or didn't respond"
	}
	return start.Reason
}

// stopPending reports whether the pod was updated and its container hasn't stopped yet.
func (o *Observation) stopPending() bool {
	return o.Record != nil && o.Record.Method == rollout.Recreate && o.Record.Container == o.ContainerID
}

// restartPending reports whether memcached doesn't run with the pod's arguments yet, and no
// known problem prevents it.
func (o *Observation) restartPending(agent *agentwire.Status) bool {
	return agent != nil && agent.ArgumentsError == "" && o.Record != nil && o.Record.Revision == o.PodRevision.Hash() &&
		!o.runsWithArguments(agent)
}

// runsWithArguments reports whether memcached runs with the arguments on its pod.
func (o *Observation) runsWithArguments(agent *agentwire.Status) bool {
	var words []string
	err := json.Unmarshal([]byte(o.Active.Annotations[annotations.Arguments]), &words)
	return err != nil || slices.Equal(agent.Arguments, words)
}

// replacementLostItems reports whether the pod is a replacement that should have received the items of
// the former one, and started without them. A later start has nothing to do with the update.
func (o *Observation) replacementLostItems(r report, in Inputs) bool {
	return r.start == v1beta1.StartCold && o.Record != nil && o.Record.KeepsItems && o.Record.Revision == o.PodRevision.Hash() &&
		in.replacing == o.Name
}

// restartLostItems reports whether memcached lost its items when it restarted for the certificate that the Secret
// still has. A later start has nothing to do with that restart. If the status describes the restart, the start of
// another container is a later one.
func (o *Observation) restartLostItems(r report, in Inputs) bool {
	record := o.Record
	return r.start == v1beta1.StartCold && record != nil && record.Restart != "" && record.Restart == r.restart && record.Attempt == in.attempt &&
		(record.Container == o.ContainerID || o.Last.RestartAnnotation != record.Restart) && r.stillOffers(record.Restart)
}
