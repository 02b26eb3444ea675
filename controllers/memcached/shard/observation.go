package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/podresult"
)

// Observation is what was read of one shard.
type Observation struct {
	Name    string
	Ordinal int
	// Set is the shard's ReplicaSet.
	Set *appsv1.ReplicaSet
	// Pods of the ReplicaSet, ordered by ComparePods.
	Pods []*corev1.Pod
	// Active is the pod that hosts the shard, and Next the one that will take over; nil
	// while there is none.
	Active, Next *corev1.Pod
	// MoveRequested is whether the user wants the active pod replaced by one on another node, and MoveStarted
	// whether the ReplicaSet has the record of it.
	MoveRequested, MoveStarted bool
	// Template is what the ReplicaSet creates its next pod from. PodRevision was applied to
	// the active pod last.
	Template, PodRevision resources.PodRevision
	// templateTarget is the target that the shard's next pod has.
	templateTarget Target
	// PredecessorTerminating is whether a former or surplus pod of the shard still terminates.
	PredecessorTerminating bool
	// HasSurplus is whether there is a pod that is no longer needed beside the one that is ready: the ReplicaSet created it from a template that
	// has changed since. It takes the place of the next pod.
	HasSurplus bool
	// Receiver is the pod that will receive the items of the shard's other pod, or receives them; nil while there is none.
	Receiver *corev1.Pod
	// Record is the record of the last update: OnPod if there is one, or OnSet.
	OnPod, OnSet, Record *UpdateRecord
	// Last is what the status says of the shard; empty while it says nothing.
	Last v1beta1.ShardStatus
	// ContainerID of the active pod. StartRecorded is whether Last describes how memcached
	// started in that container, with its current revision.
	ContainerID   string
	StartRecorded bool
	// IsRunning and IsReady are whether the active pod is.
	IsRunning, IsReady bool
	// activeState and nextState are what the statuses of the two pods say.
	activeState, nextState rollout.Pod
	// Failure is the record of the last update that failed; nil without one.
	Failure *FailureRecord
}

func receiverOf(pods []*corev1.Pod) *corev1.Pod {
	if len(pods) < 2 {
		return nil
	}
	i := slices.IndexFunc(pods, func(p *corev1.Pod) bool {
		return p.DeletionTimestamp == nil && p.Status.PodIP != "" && IsRunning(p) && !IsReady(p) && resources.CanReceive(p)
	})
	if i < 0 {
		return nil
	}
	return pods[i]
}

// Hurried returns the pod that has the shard's items if it is deleted with less time than its own grace period, and the one that
// receives them; nil if there are none.
func (o *Observation) Hurried() (from, to *corev1.Pod) {
	i := slices.IndexFunc(o.Pods, func(p *corev1.Pod) bool {
		return p.DeletionTimestamp == nil && !IsReady(p) && !podresult.IsFinished(p) && resources.CanReceive(p)
	})
	if i < 1 {
		return nil, nil
	}
	from, to = o.Pods[0], o.Pods[i] // a pod that is ready comes first
	grace := ptr.Deref(from.DeletionGracePeriodSeconds, 0)
	if grace <= 0 || grace >= ptr.Deref(from.Spec.TerminationGracePeriodSeconds, 0) {
		return nil, nil
	}
	return from, to
}

// Inputs are what EvaluateAll compares shards with.
type Inputs struct {
	Memcached *v1beta1.Memcached
	// Update is the revision that the spec results in.
	Update resources.PodRevision
	// Answers are the agents' answers by pod name, and Agents those that describe the latest start.
	Answers, Agents map[string]agentwire.Status
	// Secrets are what agents reported last of their Secrets, by the UIDs of their pods.
	Secrets map[types.UID]agentwire.Secrets
	Now     time.Time
	// Admitted are the results of dry runs that change what an update requires, by the UIDs of the pods.
	Admitted map[types.UID]AdmittedImage
	// Resizing is what Kubernetes resizes of running pods.
	Resizing resources.Resizing
	// acceptsRequests is whether all shards have the update revision. What is requested of one shard waits for it.
	acceptsRequests bool
	// attempt is the RetryToken, and replacing the shard that is being replaced, as the status says; empty for none.
	attempt, replacing string
}

// Observer reads shards. Most of them have the same revision, which it parses once.
type Observer struct {
	Status *v1beta1.MemcachedStatus
	// Update is the revision that the spec results in. It stands for a revision that cannot
	// be parsed, since a pod must not be replaced on a guess.
	Update resources.PodRevision
	parsed map[string]resources.PodRevision
}

// Observe returns what a ReplicaSet and its pods say of their shard.
func (r *Observer) Observe(ordinal int, set *appsv1.ReplicaSet, pods []*corev1.Pod) Observation {
	o := Observation{
		Name: set.Name, Ordinal: ordinal, Set: set, Pods: pods,
		Receiver: receiverOf(pods),
		OnSet:    decodeUpdate(set.Annotations),
		Failure:  DecodeRecord[FailureRecord](set.Annotations, annotations.Failed),
		Template: r.parse(set.Spec.Template.Annotations[annotations.Spec]),
	}
	revisions := make([]resources.PodRevision, len(pods))
	for i, pod := range pods {
		revisions[i] = r.parse(pod.Annotations[annotations.Spec])
	}
	o.Last, _ = StatusOf(r.Status, set.Name)
	follows := make([]bool, len(pods))
	for i, pod := range pods {
		follows[i] = revisions[i].Hash() == o.Template.Hash() && !o.moveStarted(pod)
	}
	active, next := activeAndNext(pods, follows)
	if active >= 0 {
		o.Active, o.PodRevision = pods[active], revisions[active]
		o.OnPod = decodeUpdate(o.Active.Annotations)
		o.Record = cmp.Or(o.OnPod, o.OnSet)
		o.MoveStarted = o.moveStarted(o.Active)
		o.MoveRequested = o.Active.Annotations[v1beta1.AnnotationMove] != "" && (o.MoveStarted || o.Active.DeletionTimestamp == nil)
		o.activeState = podState(o.Active, false)
		o.ContainerID, o.IsRunning, o.IsReady = ContainerID(o.Active), IsRunning(o.Active), IsReady(o.Active)
		o.StartRecorded = o.Last.StartResult != "" && o.Last.ContainerID == o.ContainerID &&
			o.Last.RestartAnnotation == RestartInStatus(o.Active.Annotations[v1beta1.AnnotationRestart]) &&
			o.Last.Revision == o.Active.Annotations[annotations.Revision]
	}
	if next >= 0 {
		o.Next, o.nextState = pods[next], podState(pods[next], true)
	}
	o.templateTarget.Revision = o.Template
	if o.MoveStarted {
		o.templateTarget.MovedPod = o.Active.Name
	}
	o.PredecessorTerminating = slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		return p != o.Active && (p.DeletionTimestamp != nil || p != o.Next)
	})
	o.HasSurplus = o.IsReady && slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p != o.Active && p != o.Next && p.DeletionTimestamp == nil })
	return o
}

// moveStarted reports whether the replacement of a pod by one on another node has started, and the user still
// wants it, or can't stop it any more: without the pod that gets the items, the shard wouldn't serve for long.
func (o *Observation) moveStarted(pod *corev1.Pod) bool {
	if o.OnSet == nil || o.OnSet.MovedPod != pod.Name {
		return false
	}
	return pod.Annotations[v1beta1.AnnotationMove] != "" || slices.ContainsFunc(o.Pods, func(p *corev1.Pod) bool {
		return p.Annotations[annotations.Receive] == string(pod.UID) && p.DeletionTimestamp == nil && podState(p, true).State != rollout.Broken
	})
}

func (r *Observer) parse(text string) resources.PodRevision {
	if r.parsed == nil {
		r.parsed = map[string]resources.PodRevision{r.Update.String(): r.Update.Parsed()}
	}
	if revision, ok := r.parsed[text]; ok {
		return revision
	}
	revision, err := resources.ParsePodRevision(text)
	if err != nil {
		revision = r.Update
	}
	r.parsed[text] = revision
	return revision
}

// activeAndNext returns the indexes of the pod that hosts a shard and, while there are two,
// of the one that will take over from it; -1 is none. follows is which of them the template describes.
func activeAndNext(pods []*corev1.Pod, follows []bool) (active, next int) {
	active, next = -1, -1
	for i, pod := range pods {
		if active < 0 {
			active = i
		}
		switch {
		case pod.DeletionTimestamp != nil:
		case follows[i] && next < 0:
			next = i
		case !follows[i] && (follows[active] || pods[active].DeletionTimestamp != nil):
			active = i
		}
	}
	if next == active || active >= 0 && follows[active] {
		next = -1
	}
	return active, next
}

// IsLatestStart reports whether an agent's answer describes this pod's latest start. The
// answer may be of another pod that took over the address, or of memcached before a restart
// that is pending.
func IsLatestStart(agent agentwire.Status, pod *corev1.Pod) bool {
	return agent.PodUID == string(pod.UID) &&
		agent.Start.Result != "" &&
		agent.Restart == pod.Annotations[v1beta1.AnnotationRestart] &&
		(agent.Phase == agentwire.PhaseServing || agent.Phase == agentwire.PhaseDraining)
}

// IsReceiving reports whether the pod of an agent receives the items of another one.
func IsReceiving(agent agentwire.Status) bool {
	return agent.Phase == agentwire.PhaseReceiving || agent.Phase == agentwire.PhaseFollowing
}

// RestartInStatus returns the value of a restart annotation as the status contains it: the value
// itself, or the start of a hash of a long one.
func RestartInStatus(value string) string {
	if len(value) <= v1beta1.MaxRestart {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:v1beta1.MaxRestart/2])
}

// StatusOf returns what the status says of a shard.
func StatusOf(status *v1beta1.MemcachedStatus, name string) (v1beta1.ShardStatus, bool) {
	i := slices.IndexFunc(status.Shards, func(s v1beta1.ShardStatus) bool { return s.Name == name })
	if i < 0 {
		return v1beta1.ShardStatus{}, false
	}
	return status.Shards[i], true
}
