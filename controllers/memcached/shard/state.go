package shard

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// DrainedPodDeletionCost makes a ReplicaSet delete a pod before others.
const DrainedPodDeletionCost = "-1000"

// State is an evaluated shard.
type State struct {
	Observation
	// Agent is the answer of the active pod's agent; nil without one.
	Agent *agentwire.Status
	// Target of the active pod, and Attempt is the RetryToken of the update to it.
	Target  Target
	Attempt string
	// Draining is whether the ReplicaSet deletes the active pod first.
	Draining bool
	// Rewritten is whether a patch would give the active pod another image than the one that was checked.
	Rewritten bool
	// Surges is whether the shard runs two pods until it has the target.
	Surges bool
	// Rollout is what the planner decides by.
	Rollout rollout.Shard
}

// EvaluateAll determines the results of the last updates of shards and what the next ones require. It omits a shard
// whose ReplicaSet is being deleted, and has to be recreated first.
func EvaluateAll(observations []Observation, in Inputs) []State {
	observations = slices.DeleteFunc(slices.Clone(observations), func(o Observation) bool { return o.Set.DeletionTimestamp != nil })
	in.acceptsRequests, in.attempt, in.replacing = allHave(observations, in.Update), RetryToken(in.Memcached), in.replacedShard()
	states := make([]State, len(observations))
	for i, o := range observations {
		if o.Active != nil {
			states[i] = evaluate(o, in)
		} else {
			states[i] = evaluateWithoutPod(o, in)
		}
	}
	return states
}

// replacedShard returns which shard is being replaced, as the status says; empty for none.
func (in Inputs) replacedShard() string {
	if u := in.Memcached.Status.Update; u != nil && u.Revision == in.Update.Hash() && u.Method == v1beta1.UpdateReplace {
		return u.Shard
	}
	return ""
}

// evaluate evaluates a shard that has a pod. Each value follows from those before it.
func evaluate(o Observation, in Inputs) State {
	report := in.reportOf(&o)
	pod := activePod(&o, report, in)
	target := targetOf(&o, report, pod, in)
	failed := failure(&o, report, in)
	resizes := in.resizesOf(&o, pod)
	toTarget, rollback := changesOf(&o, report, pod, target, failed, resizes, in)
	draining := o.Active.Annotations[corev1.PodDeletionCost] == DrainedPodDeletionCost
	r := rollout.Shard{
		Name: o.Name, Target: target.Hash(), Template: o.templateTarget.Hash(), Pod: pod, Failed: failed,
		ToTarget: toTarget, Rollback: rollback, Leaves: target.onlyMoves(&o) && strings.HasPrefix(o.Active.Annotations[v1beta1.AnnotationMove], annotations.NodeLeaves),
		PredecessorTerminating: o.PredecessorTerminating, ResourcesDrifted: resizes.drifted, AgentRetry: report.retry,
		StopAnnounced: o.stopAnnounced(report.agent) && !o.stopPending(),
	}
	r.HandsOver = o.Next != nil && o.Next.Annotations[annotations.Receive] == string(o.Active.UID) && !r.Pod.Terminating
	surges := needsSecondPod(r) && o.replacementStarted(target) && !(draining && o.nextState.State == rollout.Serving)
	surges = surges || r.HandsOver && o.nextState.State != rollout.Broken // until one pod is known to have the items
	r.Next = nextPod(&o, target, surges, in)
	return State{Observation: o, Agent: report.agent, Target: target, Attempt: in.attempt, Draining: draining, Surges: surges, Rollout: r, Rewritten: in.rewrites(&o)}
}

// evaluateWithoutPod evaluates a shard whose ReplicaSet has yet to create a pod. If the API server rejects it, the shard
// is like one with a broken pod: it doesn't run until it is updated.
func evaluateWithoutPod(o Observation, in Inputs) State {
	target, template := Target{Revision: in.Update}, o.templateTarget.Hash()
	r := rollout.Shard{Name: o.Name, Target: target.Hash(), Template: template, Failed: failure(&o, report{}, in)}
	if problem := CreationProblem(o.Set); problem != nil {
		r.Pod = rollout.Pod{Revision: template, State: rollout.Broken, Reason: problem.Message}
		r.ToTarget = changeOf(in.factsOfNewPod(&o))
	}
	return State{Observation: o, Target: target, Attempt: in.attempt, Rollout: r}
}

// Named returns the shard of that name, or nil.
func Named(shards []State, name string) *State {
	i := slices.IndexFunc(shards, func(s State) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &shards[i]
}

// nextPod returns the second pod, which will take over; nil while there is none. One that the API server rejects is like one that no
// node accepts: it may start once there is room. One that doesn't start is never broken if only its node is new: the first pod
// serves until there is a better node.
func nextPod(o *Observation, target Target, surges bool, in Inputs) *rollout.Pod {
	var next rollout.Pod
	switch problem := CreationProblem(o.Set); {
	case o.Next != nil:
		next, next.Revision = o.nextState, o.templateTarget.Hash()
		if IsReceiving(in.Answers[o.Next.Name]) && next.State == rollout.Starting {
			next.State = rollout.Receiving
		}
	case problem != nil && surges:
		next = rollout.Pod{Revision: o.templateTarget.Hash(), State: rollout.Starting, Reason: problem.Message}
	default:
		return nil
	}
	if next.State == rollout.Broken && target.onlyMoves(o) {
		next.State = rollout.Starting
	}
	return &next
}

// NextProblem returns what keeps the second pod from running, or nil.
func (o *Observation) NextProblem() *Problem {
	if o.Next != nil {
		return PodProblem(o.Next)
	}
	return CreationProblem(o.Set)
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
