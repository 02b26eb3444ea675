package shard

import (
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
)

// DrainedPodDeletionCost makes a ReplicaSet delete a pod before others.
const DrainedPodDeletionCost = "-1000"

// Inputs are what EvaluateAll compares shards with.
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
	// acceptsRequests is whether all shards have the update revision. What is requested of one shard waits for it.
	acceptsRequests bool
}

// State is an evaluated shard.
type State struct {
	Observation
	// Agent is the answer of the active pod's agent; nil without one.
	Agent *agentwire.Status
	// Target of the active pod.
	Target Target
	// Draining is whether the ReplicaSet deletes the active pod first.
	Draining bool
	// Surges is whether the shard runs two pods until it has the target.
	Surges bool
	// Rollout is what the planner decides by.
	Rollout rollout.Shard
}

// EvaluateAll determines the results of the last updates of shards and what the next ones require. It omits a shard
// whose ReplicaSet is being deleted, and has to be recreated first.
func EvaluateAll(observations []Observation, in Inputs) []State {
	observations = slices.DeleteFunc(slices.Clone(observations), func(o Observation) bool { return o.Set.DeletionTimestamp != nil })
	in.acceptsRequests = allHave(observations, in.Update)
	states := make([]State, len(observations))
	for i, o := range observations {
		if o.Active == nil {
			states[i] = evaluateWithoutPod(o, in)
		} else {
			states[i] = evaluate(o, in)
		}
	}
	return states
}

// evaluate evaluates a shard that has a pod. Each value follows from those before it.
func evaluate(o Observation, in Inputs) State {
	agent := in.agentOf(o.Active)
	pod := activePod(&o, agent, in)
	target := targetOf(&o, agent, pod, in)
	failed := failure(&o, in)
	toTarget := changeToTarget(&o, agent, pod, target, failed, in)
	draining := o.Active.Annotations[corev1.PodDeletionCost] == DrainedPodDeletionCost
	r := rollout.Shard{
		Name: o.Name, Target: target.Hash(), Template: o.templateTarget().Hash(), Pod: pod, Failed: failed,
		ToTarget: toTarget, Rollback: changeToTemplate(&o, agent, pod, in),
		PredecessorTerminating: hasPredecessor(&o), ResourcesDrifted: hasDrifted(&o, in),
		StopAnnounced: strings.HasPrefix(o.Active.Annotations[annotations.Stop], o.stopPrefix()) && !o.stopPending(),
	}
	surges := needsSecondPod(r) && o.replacementStarted(target) && !(draining && o.Next != nil && IsReady(o.Next))
	r.Next = nextPod(&o, target, surges, in)
	if agent == nil {
		r.AgentRetry = o.AgentRetry(in.Now)
	}
	return State{Observation: o, Agent: agent, Target: target, Draining: draining, Surges: surges, Rollout: r}
}

// evaluateWithoutPod evaluates a shard whose ReplicaSet has yet to create a pod. If the API server rejects it, the shard
// is like one with a broken pod: it doesn't run until it is updated.
func evaluateWithoutPod(o Observation, in Inputs) State {
	target, template := Target{Revision: in.Update}, o.templateTarget().Hash()
	r := rollout.Shard{Name: o.Name, Target: target.Hash(), Template: template, Failed: failure(&o, in)}
	if reason := podCreationFailure(o.Set); reason != "" {
		r.Pod = rollout.Pod{Revision: template, State: rollout.Broken, Reason: reason}
		r.ToTarget = changeOf(facts{from: o.Template, to: in.Update, crossSeries: in.allowsCrossSeries(),
			resizing: in.Resizing, resize: rollout.Needed, mountsSecrets: true})
	}
	return State{Observation: o, Target: target, Rollout: r}
}

// Named returns the shard of that name, or nil.
func Named(shards []State, name string) *State {
	i := slices.IndexFunc(shards, func(s State) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &shards[i]
}

// failure returns why the current attempt of the update failed; empty if it hasn't.
func failure(o *Observation, in Inputs) string {
	r := DecodeRecord[FailureRecord](o.Set.Annotations, annotations.Failed)
	if r == nil || r.Revision != in.Update.Hash() || r.Attempt != RetryToken(in.Memcached) || !in.stillOffers(o.Active, r.Restart) {
		return ""
	}
	return r.Message
}

// changeToTarget returns what it takes to bring the active pod to its target.
func changeToTarget(o *Observation, agent *agentwire.Status, pod rollout.Pod, target Target, failed string, in Inputs) rollout.Change {
	f := in.factsOf(o, agent, in.Update)
	f.replacementAnnounced = in.announcesReplacement(o.Name)
	hasTarget := pod.Revision == target.Hash()
	switch {
	case target.onlyMoves(o):
		f.request = moveRequest(o, f.handsOver)
	case target.Restart != "":
		f.request = &request{method: rollout.Restart, reason: "restarts because " + in.Secrets[o.Active.UID].Certificate.RestartRequired}
	case hasTarget && o.templateTarget().Hash() == target.Hash() && failed == "" && f.replacementAnnounced:
		f.request = &request{method: rollout.Replace, reason: "the new pod takes over"}
	case hasTarget: // only the result is pending
		f.from, f.version, f.resize, f.mountsSecrets = o.Template, "", rollout.Needed, true
	default:
		f.byHandover = in.updatesByHandover() && pod.State != rollout.Broken
	}
	return changeOf(f)
}

// changeToTemplate returns what it takes to change the active pod back to the template. A pod that was updated in
// place keeps what it has too much and Kubernetes can't take away.
func changeToTemplate(o *Observation, agent *agentwire.Status, pod rollout.Pod, in Inputs) rollout.Change {
	f := in.factsOf(o, agent, o.Template)
	if pod.InPlace {
		f.resizing = resources.ResizeAll
	}
	if f.resize == rollout.Needed && !resizable(in.Resizing, containerResources(o.Active), o.Template.Resources) {
		f.resize = rollout.NotNeeded
	}
	return changeOf(f)
}

// factsOf returns the facts of a change of the active pod to a revision.
func (in Inputs) factsOf(o *Observation, agent *agentwire.Status, to resources.PodRevision) facts {
	f := facts{
		from: o.PodRevision, to: to, crossSeries: in.allowsCrossSeries(), resizing: in.Resizing,
		mountsSecrets: in.mountsSecrets(o.Active, to), handsOver: resources.HandsOver(in.Memcached) && resources.CanHandOver(o.Active),
	}
	f.resize, f.resizeReason = resizeProgress(o.Active, to.Resources)
	if secrets, known := in.Secrets[o.Active.UID]; known {
		f.secrets = &secrets
	}
	if agent != nil {
		f.version = agent.Version
		// Both: an announcement that was withdrawn may still be the last one that the agent read.
		stop := o.Active.Annotations[annotations.Stop]
		f.stopAcknowledged = agent.AnnouncedStop == stop && strings.HasPrefix(stop, o.stopPrefix()+to.Hash())
	}
	return f
}

// agentOf returns the answer of a pod's agent; nil without one.
func (in Inputs) agentOf(pod *corev1.Pod) *agentwire.Status {
	if agent, ok := in.Agents[pod.Name]; ok {
		return &agent
	}
	return nil
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

// announcesReplacement reports whether the status says that a shard is being replaced.
func (in Inputs) announcesReplacement(shard string) bool {
	u := in.Memcached.Status.Update
	return u != nil && u.Revision == in.Update.Hash() && u.Shard == shard && u.Method == v1alpha1.UpdateReplace
}

// hasPredecessor reports whether a former or surplus pod of the shard still terminates.
func hasPredecessor(o *Observation) bool {
	return slices.ContainsFunc(o.Pods, func(p *corev1.Pod) bool {
		return p != o.Active && (p.DeletionTimestamp != nil || p != o.Next && !IsFinished(p))
	})
}

// hasDrifted reports whether the active pod was resized for a spec that has changed since.
func hasDrifted(o *Observation, in Inputs) bool {
	return o.PodRevision.Hash() == o.templateTarget().Hash() && hasStaleResize(o.Active, o.PodRevision.Resources, in.Resizing) &&
		len(missingResources(containerResources(o.Active), in.Update.Resources)) > 0
}

// nextPod returns the second pod, which will take over; nil while there is none. If the API server rejects it, it is broken.
// One that doesn't start is never broken if only its node is new: the first pod serves until there is a better node.
func nextPod(o *Observation, target Target, surges bool, in Inputs) *rollout.Pod {
	var next rollout.Pod
	switch reason := podCreationFailure(o.Set); {
	case o.Next != nil:
		next = podState(o.Next, o.templateTarget().Hash(), true)
		if _, ok := in.Receiving[o.Next.Name]; ok && next.State == rollout.Starting {
			next.State = rollout.Receiving
		}
	case reason != "" && surges:
		next = rollout.Pod{Revision: o.templateTarget().Hash(), State: rollout.Broken, Reason: reason}
	default:
		return nil
	}
	if next.State == rollout.Broken && target.onlyMoves(o) {
		next.State = rollout.Starting
	}
	return &next
}

// needsSecondPod reports whether a shard that is being replaced runs two pods.
func needsSecondPod(r rollout.Shard) bool {
	return r.Template == r.Target && r.Pod.Revision != r.Target && r.Failed == "" &&
		r.ToTarget.Method == rollout.Replace && r.Pod.State != rollout.Broken && !r.Pod.Terminating
}

// replacementStarted reports whether a replacement of the pod by one of the target's revision was started. A ReplicaSet that
// a user deleted without its pod is recreated from shard 0's template, which starts no replacement.
func (o *Observation) replacementStarted(target Target) bool {
	return o.OnSet != nil && o.OnSet.Method == rollout.Replace && o.OnSet.Revision == target.Revision.Hash()
}

// StartsReplacement reports whether a step that creates the next pod from the target is the first one.
func (s *State) StartsReplacement() bool {
	return s.Active != nil && (s.Rollout.Template != s.Rollout.Target || !s.replacementStarted(s.Target))
}

// IsUpdatedTo reports whether an update to the revision restarted or replaced the active pod.
func (s *State) IsUpdatedTo(revision string) bool {
	return s.Record != nil && s.Record.Revision == revision && s.Record.Method > rollout.Live && s.Rollout.Pod.Revision == revision && !s.MoveStarted
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
