package shard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

const (
	// DrainedPodDeletionCost makes a ReplicaSet delete a pod before others.
	DrainedPodDeletionCost = "-1000"
	// containerRestartGrace is how long a kubelet may take to recreate a container whose
	// image was changed, or to restart one that exited.
	containerRestartGrace = 10 * time.Second
	// AnnounceRetry is how long an agent may take to read an announcement, and the first wait before an update is
	// repeated: the kubelet projects a change within a second, but can miss it until the pod changes again.
	AnnounceRetry = 5 * time.Second
	// argumentsReadGrace is how long an agent may take to read new arguments: the kubelet projects them within a
	// second, if need be the repeated ones, and the agent polls five times a second.
	argumentsReadGrace = 2 * AnnounceRetry
)

// Inputs are what Evaluate compares a shard with.
type Inputs struct {
	Memcached *v1alpha1.Memcached
	// Update is the revision that the spec results in.
	Update resources.PodRevision
	// Agents are the agents' answers by pod name, and Receiving those of pods that receive the items
	// of another one.
	Agents, Receiving map[string]agentwire.Status
	// Secrets are what agents reported last of their Secrets, by the UIDs of their pods.
	Secrets map[types.UID]agentwire.Secrets
	Now     time.Time
	// Resizing is what Kubernetes resizes of running pods.
	Resizing resources.Resizing
}

// allowsCrossSeries reports whether shards may be updated to another release series.
func (in Inputs) allowsCrossSeries() bool {
	s := in.Memcached.Spec.UpdateStrategy
	return s != nil && s.CrossSeriesUpgrade == v1alpha1.CrossSeriesAllow
}

// updatesByHandover reports whether an update hands over the items instead of restarting memcached.
func (in Inputs) updatesByHandover() bool {
	s := in.Memcached.Spec.UpdateStrategy
	return s != nil && s.Type == v1alpha1.UpdateHandover
}

// handsOver reports whether a replacement of the pod receives its items.
func (in Inputs) handsOver(pod *corev1.Pod) bool {
	return pod != nil && resources.HandsOver(in.Memcached) && resources.CanHandOver(pod)
}

// State is an evaluated shard.
type State struct {
	Observation
	// Agent is the answer of the active pod's agent; nil without one.
	Agent *agentwire.Status
	// Draining is whether the ReplicaSet deletes the active pod first.
	Draining bool
	// Surges is whether the shard runs two pods until it has the update revision.
	Surges bool
	// RestartToken is the value of the restart annotation that the active pod gets for its certificate; empty
	// if it gets none.
	RestartToken string
	// LostByRestart is the value of the restart annotation with which memcached restarted for a certificate and
	// lost its items; empty if it didn't.
	LostByRestart string
	// Rollout is what the planner decides by.
	Rollout rollout.Shard
}

// Evaluate determines the result of the shard's last update and what the next one
// requires.
func Evaluate(o Observation, in Inputs) State {
	update := in.Update.Hash()
	s := State{Observation: o, Rollout: rollout.Shard{Name: o.Name, Template: o.Template.Hash()}}
	r := &s.Rollout
	failed := DecodeRecord[FailureRecord](o.Set.Annotations, annotations.Failed)
	if failed != nil && failed.Revision == update && failed.Attempt == RetryToken(in.Memcached) && in.stillOffers(o.Active, failed.Restart) {
		r.Failed = failed.Message
	}
	creationFailure := podCreationFailure(o.Set)
	if o.Active == nil {
		if creationFailure != "" {
			r.Pod = rollout.Pod{Revision: r.Template, State: rollout.Broken, Reason: creationFailure}
			r.ToTarget = changeBetween(o.Template, in.Update, "", in.allowsCrossSeries(), in.Resizing, true, false)
		}
		return s
	}
	if agent, ok := in.Agents[o.Active.Name]; ok {
		s.Agent = &agent
	}
	r.PredecessorTerminating = slices.ContainsFunc(o.Pods, func(p *corev1.Pod) bool {
		return p != o.Active && (p.DeletionTimestamp != nil || p != o.Next && !IsFinished(p))
	})
	s.Draining = o.Active.Annotations[corev1.PodDeletionCost] == DrainedPodDeletionCost
	s.evaluatePod(in)
	s.restart(in)
	r.Moves = o.Moves && r.Template == update && s.PodRevision.Hash() == update
	r.ToTarget = s.toTarget(in)
	r.Rollback = s.rollback(in)
	if s.Agent == nil {
		r.AgentRetry = o.AgentRetry(in.Now)
	}
	if o.Next != nil {
		next := podState(o.Next, r.Template, true)
		if _, ok := in.Receiving[o.Next.Name]; ok && next.State == rollout.Starting {
			next.State = rollout.Receiving
		}
		r.Next = &next
	} else if creationFailure != "" && s.needsSurge(update) {
		r.Next = &rollout.Pod{Revision: r.Template, State: rollout.Broken, Reason: creationFailure}
	}
	r.ToTarget.EmptyStartAnnounced = s.replacementAnnounced(in)
	r.ResourcesDrifted = r.Pod.Revision == r.Template && hasStaleResize(o.Active, o.PodRevision.Resources, in.Resizing) &&
		len(missingResources(containerResources(o.Active), in.Update.Resources)) > 0
	r.StopAnnounced = strings.HasPrefix(o.Active.Annotations[annotations.Stop], s.tokenPrefix()) && !s.stopPending()
	s.Surges = s.needsSurge(update)
	return s
}

// EvaluateAll evaluates the shards whose ReplicaSet isn't being deleted: a ReplicaSet that
// is has to be recreated first.
func EvaluateAll(observations []Observation, in Inputs) []State {
	states := make([]State, 0, len(observations))
	for _, o := range observations {
		if o.Set.DeletionTimestamp == nil {
			states = append(states, Evaluate(o, in))
		}
	}
	return states
}

// Named returns the shard of that name, or nil.
func Named(shards []State, name string) *State {
	i := slices.IndexFunc(shards, func(s State) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &shards[i]
}

// evaluatePod sets the state of the active pod and the result of its last update.
func (s *State) evaluatePod(in Inputs) {
	pod := podState(s.Active, s.PodRevision.Hash(), false)
	if s.Moving {
		pod.Revision += movingRevision
	}
	pod.InPlace = s.OnPod != nil && s.OnPod.Revision == pod.Revision && s.OnPod.From == s.Rollout.Template &&
		(s.OnSet == nil || s.OnSet.At.Before(s.OnPod.At))
	if pod.State == rollout.Broken && s.stopPending() && in.Now.Sub(s.Record.At) < containerRestartGrace {
		pod.State = rollout.Starting // the container that is broken is the previous one
	}
	s.Rollout.Pod = pod
	s.evaluateOutcome(in)
}

// replacementAnnounced reports whether the status says that the shard is being replaced.
func (s *State) replacementAnnounced(in Inputs) bool {
	u := in.Memcached.Status.Update
	return u != nil && u.Revision == in.Update.Hash() && u.Shard == s.Name && u.Method == v1alpha1.UpdateReplace
}

// evaluateOutcome sets the result of the active pod's last update.
func (s *State) evaluateOutcome(in Inputs) {
	pod, record := &s.Rollout.Pod, s.Record
	switch {
	case pod.State != rollout.Serving:
	case s.stopPending(), s.restartPending(): // also after a rollback: what failed is still serving
	case record == nil || record.Revision != pod.Revision || pod.Revision == s.Rollout.Template || record.Method <= rollout.Live:
		switch {
		case s.Agent == nil && !s.StartRecorded:
		case s.replacementLostItems(in):
			s.lost("memcached started empty in its new pod")
		case s.restartLostItems(in):
			s.LostByRestart = s.Record.Restart
			s.lost("memcached started empty after its restart for a certificate")
		default:
			pod.Outcome = rollout.Verified
		}
	case s.Agent == nil:
	default:
		s.evaluateRestart(in.Now)
	}
}

// lost sets the result of an update after which memcached started empty.
func (s *State) lost(reason string) {
	if s.Agent != nil {
		reason += ": " + s.Agent.Start.Reason
	}
	s.Rollout.Pod.Outcome, s.Rollout.Pod.Reason = rollout.Cold, reason
}

// latestStart returns how memcached started last, and with which restart annotation.
func (s *State) latestStart() (v1alpha1.StartResult, string) {
	if s.Agent != nil {
		return v1alpha1.StartResult(s.Agent.Start.Result), RestartToken(s.Agent.Restart)
	}
	return s.Last.Start, s.Last.Restart
}

// replacementLostItems reports whether the pod is a replacement that should have received the items of
// the former one, and started without them. A later start has nothing to do with the update.
func (s *State) replacementLostItems(in Inputs) bool {
	start, _ := s.latestStart()
	return start == v1alpha1.StartCold && s.Record != nil && s.Record.KeepsItems && s.Record.Revision == s.Rollout.Pod.Revision &&
		s.replacementAnnounced(in)
}

// evaluateRestart sets the result of a restart by what the agent reports.
func (s *State) evaluateRestart(now time.Time) {
	pod := &s.Rollout.Pod
	switch version := s.PodRevision.Image.Version; {
	case version != "" && s.Agent.Version != version:
		pod.Outcome, pod.Reason = rollout.Mismatched, "image "+s.PodRevision.Image.Reference+" contains memcached "+s.Agent.Version
	case s.Agent.ArgumentsError != "" && now.Sub(s.Record.At) > argumentsReadGrace:
		pod.Outcome, pod.Reason = rollout.Mismatched, s.Agent.ArgumentsError
	case !s.runsWithArguments():
	case s.Agent.Start.Result == agentwire.StartCold:
		pod.Outcome, pod.Reason = rollout.Cold, "memcached started empty: "+s.Agent.Start.Reason
	default:
		pod.Outcome = rollout.Verified
	}
}

// stopPending reports whether the pod was updated and its container hasn't stopped yet.
func (s *State) stopPending() bool {
	return s.Record != nil && s.Record.Method == rollout.Recreate && s.Record.Container == s.ContainerID
}

// restartPending reports whether memcached doesn't run with the pod's arguments yet, and no
// known problem prevents it.
func (s *State) restartPending() bool {
	return s.Agent != nil && s.Agent.ArgumentsError == "" && s.Record != nil && s.Record.Revision == s.Rollout.Pod.Revision &&
		!s.runsWithArguments()
}

// runsWithArguments reports whether memcached runs with the arguments on its pod.
func (s *State) runsWithArguments() bool {
	var words []string
	err := json.Unmarshal([]byte(s.Active.Annotations[annotations.Arguments]), &words)
	return err != nil || slices.Equal(s.Agent.Arguments, words)
}

// movingRevision is added to the revision of a pod whose move has begun.
const movingRevision = "-moves"

// toTarget returns what it takes to bring the shard to the update revision. Whether its Secrets matter
// depends on the method, which is known last.
func (s *State) toTarget(in Inputs) rollout.Change {
	c := s.changeToTarget(in)
	if in.mountsSecrets(s.Active, in.Update) {
		c.SecretError = in.secretError(s.Active, s.PodRevision, in.Update, c.Method)
	}
	return c
}

func (s *State) changeToTarget(in Inputs) rollout.Change {
	switch update := in.Update.Hash(); {
	case s.Rollout.Moves:
		return s.move(in)
	case s.Rollout.Restarts:
		return rollout.Change{Method: rollout.Restart, Description: "restarts because " + in.Secrets[s.Active.UID].Certificate.RestartRequired}
	case s.Rollout.Pod.Revision == update && s.Rollout.Template == update && s.Rollout.Failed == "" && s.replacementAnnounced(in):
		return rollout.Change{Method: rollout.Replace, Description: "the new pod takes over", HandsOver: in.handsOver(s.Active)}
	case s.Rollout.Pod.Revision == update: // only the result is pending
		return changeBetween(s.Template, in.Update, "", in.allowsCrossSeries(), in.Resizing, true, in.handsOver(s.Active))
	case in.updatesByHandover() && s.Rollout.Pod.State != rollout.Broken:
		return s.change(in.Update, in).ByHandover()
	default:
		return s.change(in.Update, in)
	}
}

// move returns what it takes to bring the shard to another node.
func (s *State) move(in Inputs) rollout.Change {
	c := rollout.Change{
		Method:      rollout.Replace,
		Description: "moves from node " + s.Active.Spec.NodeName + " to another one with its items",
		HandsOver:   in.handsOver(s.Active) && slab.Of(in.Update.Arguments, in.Update.Image.Version).CAS,
	}
	if !c.HandsOver && !s.Moving {
		c.Forbidden = fmt.Sprintf("pod %s can't hand over its items, so it isn't moved; remove the annotation %s, or delete the pod to move the shard without its items",
			s.Active.Name, v1alpha1.AnnotationMove)
	}
	return c
}

// change returns what it takes to change the active pod to a revision.
func (s *State) change(to resources.PodRevision, in Inputs) rollout.Change {
	version := ""
	if s.Agent != nil {
		version = s.Agent.Version
	}
	c := changeBetween(s.PodRevision, to, version, in.allowsCrossSeries(), in.Resizing, in.mountsSecrets(s.Active, to), in.handsOver(s.Active))
	if c.Resize != rollout.NotNeeded {
		c.Resize, c.ResizeReason = resizeProgress(s.Active, to.Resources)
		if c.Resize == rollout.Refused {
			c.Method, c.Resize = rollout.Replace, rollout.NotNeeded
			c.HandsOver = in.handsOver(s.Active)
			c.Description += ", " + replacementOf(c) + ", as its node doesn't have the resources: " + c.ResizeReason
		}
	}
	// Both: an announcement that was withdrawn may still be the last one that the agent read.
	stop := s.Active.Annotations[annotations.Stop]
	c.StopAcknowledged = s.Agent != nil && s.Agent.AnnouncedStop == stop && strings.HasPrefix(stop, s.tokenPrefix()+to.Hash())
	return c
}

// rollback returns what it takes to change the active pod back to the template. A pod that was updated in place keeps
// what it has too much and Kubernetes can't take away.
func (s *State) rollback(in Inputs) rollout.Change {
	can := in.Resizing
	if s.Rollout.Pod.InPlace {
		in.Resizing = resources.ResizeAll
	}
	c := s.change(s.Template, in)
	if c.Resize == rollout.Needed && !resizable(can, containerResources(s.Active), s.Template.Resources) {
		c.Resize = rollout.NotNeeded
	}
	return c
}

// needsSurge reports whether the shard runs two pods. A ReplicaSet that a user deleted without
// its pod is recreated from shard 0's template, which starts no replacement.
func (s *State) needsSurge(update string) bool {
	r := &s.Rollout
	takesOver := r.Next != nil && r.Next.State == rollout.Serving
	return r.Template == update && s.ReplacementStarted(update) && r.Pod.Revision != update && r.Failed == "" &&
		r.ToTarget.Method == rollout.Replace && r.Pod.State != rollout.Broken && !r.Pod.Terminating && !(s.Draining && takesOver)
}

// ReplacementStarted reports whether a replacement of the pod by the revision was started.
func (s *State) ReplacementStarted(revision string) bool {
	return s.OnSet != nil && s.OnSet.Method == rollout.Replace && s.OnSet.Revision == revision
}

// ReportsLatestStart reports whether the agent's answer describes the latest start. While a
// restart is pending, it describes the previous one.
func (s *State) ReportsLatestStart() bool {
	return s.Agent != nil && !(s.Rollout.Pod.State == rollout.Serving && s.Rollout.Pod.Outcome == rollout.Pending)
}

// LastUpdated returns the shard that was updated last with a disruption for its clients, or
// nil.
func LastUpdated(shards []State) *State {
	var last *State
	for i := range shards {
		s := &shards[i]
		if s.Record != nil && s.Record.Method > rollout.Live && (last == nil || s.Record.At.After(last.Record.At)) {
			last = s
		}
	}
	return last
}
