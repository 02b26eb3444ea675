package memcached

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// shard is what was seen of one shard, ready to be decided about.
type shard struct {
	rollout.Shard
	// set that keeps its pod.
	set *appsv1.ReplicaSet
	// pod that holds the shard, and next the one that is to take over; nil while
	// there is none.
	pod, next *corev1.Pod
	// template and asked are what the set's next pod is to be and what was last
	// asked of the pod.
	template, asked manifests.Asked
	// onPod and onSet are the steps that were last noted there, step the one that
	// counts, and agent what was answered.
	onPod, onSet, step *step
	agent              *agentapi.Status
	// retired: the pod is the one that the set gives up first.
	retired bool
}

// step is what is noted on a shard when it is changed.
type step struct {
	// Revision that it leads to, and the one that it leads from.
	Revision string        `json:"revision"`
	From     string        `json:"from,omitempty"`
	At       time.Time     `json:"at"`
	Class    rollout.Class `json:"class"`
	// Container that ran before.
	Container string `json:"container,omitempty"`
	// Gets and Hits of the minute before.
	Gets int64 `json:"gets,omitempty"`
	Hits int64 `json:"hits,omitempty"`
}

// failure is what is noted on a shard on which a change failed.
type failure struct {
	Revision string `json:"revision"`
	// Attempt that failed; another one is tried.
	Attempt string `json:"attempt,omitempty"`
	Message string `json:"message"`
}

// note returns a note as an annotation's value.
func note(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // notes are plain
		panic(err)
	}
	return string(raw)
}

// readNote returns the note of that name on an object, or nil.
func readNote[T any](annotations map[string]string, name string) *T {
	text, ok := annotations[name]
	v := new(T)
	if !ok || json.Unmarshal([]byte(text), v) != nil {
		return nil
	}
	return v
}

// attemptOf returns what has an update that was stopped tried again when it is
// another.
func attemptOf(m *v1alpha1.Memcached) string {
	attempt := m.Annotations[v1alpha1.AnnotationRetry]
	if acceptsCold(m) {
		attempt += "/" + string(v1alpha1.ActionContinue)
	}
	return attempt
}

func acceptsCold(m *v1alpha1.Memcached) bool {
	return m.Spec.UpdateStrategy != nil && m.Spec.UpdateStrategy.WhenNotWarm == v1alpha1.ActionContinue
}

// readShards reads what is asked now, and what was asked of the shards.
func (seen *observed) readShards(defaultImage string) {
	m := seen.memcached
	seen.image, seen.unusable = manifests.ResolveImage(m.Spec.Image, m.Spec.Version, defaultImage)
	seen.target = manifests.Ask(&m.Spec, seen.image)
	seen.shards = nil
	asked := reader{target: seen.target}
	for ordinal := range int(*m.Spec.Size) {
		name := manifests.ShardName(m.Name, ordinal)
		set, ok := seen.objects[manifests.Key{Kind: manifests.KindReplicaSet, Name: name}]
		if ok && (set.owner == ours || set.owner == orphaned) {
			seen.shards = append(seen.shards, asked.shard(set.Object.(*appsv1.ReplicaSet), seen.pods[name]))
		}
	}
}

// shardsOf returns the shards as they are decided about. One whose ReplicaSet goes has
// to be made anew first.
func shardsOf(seen *observed, canResize bool) []shard {
	var shards []shard
	for _, s := range seen.shards {
		if s.set.DeletionTimestamp == nil {
			shards = append(shards, s.judged(seen, canResize))
		}
	}
	return shards
}

// judged returns the shard with what its agent told, what came of its last change, and
// what the next one takes.
func (s shard) judged(seen *observed, canResize bool) shard {
	m, set, target := seen.memcached, s.set, seen.target
	if failed := readNote[failure](set.Annotations, v1alpha1.AnnotationFailed); failed != nil &&
		failed.Revision == target.Revision() && failed.Attempt == attemptOf(m) {
		s.Failed = failed.Message
	}
	if s.pod == nil {
		if why := podRefused(set); why != "" {
			s.Pod = rollout.Pod{Revision: s.Template, State: rollout.Broken, Why: why}
			s.Forward = changeOf(s.template, target, "", acceptsCold(m), canResize)
		}
		return s
	}
	if agent, ok := seen.agents[s.pod.Name]; ok {
		s.agent = &agent
	}
	s.Leaving = slices.ContainsFunc(seen.pods[set.Name], func(p *corev1.Pod) bool {
		return p != s.pod && (p.DeletionTimestamp != nil || p != s.next && !hasEnded(p))
	})
	s.retired = s.pod.Annotations[corev1.PodDeletionCost] == retiredCost
	s.Pod = podOf(s.pod, s.asked.Revision(), false)
	s.Pod.InPlace = s.onPod != nil && s.onPod.Revision == s.Pod.Revision && s.onPod.From == s.Template &&
		(s.onSet == nil || s.onSet.At.Before(s.onPod.At))
	if s.Pod.State == rollout.Broken && s.stopIsToCome() && seen.now.Sub(s.step.At) < endsContainer {
		s.Pod.State = rollout.Starting // it is the container before that is broken
	}
	s.judge(seen)
	s.Forward = s.change(m, target, canResize)
	if s.Pod.Revision == target.Revision() { // what is left is to see what came of it
		s.Forward = changeOf(s.template, target, "", acceptsCold(m), canResize)
	}
	s.Back = s.change(m, s.template, canResize)
	if s.next != nil {
		next := podOf(s.next, s.Template, true)
		s.Next = &next
	} else if why := podRefused(set); why != "" && s.surges(target.Revision()) {
		s.Next = &rollout.Pod{Revision: s.Template, State: rollout.Broken, Why: why}
	}
	told := m.Status.Update
	s.Forward.Told = told != nil && told.Revision == target.Revision() && told.Shard == s.Name && told.Step == rollout.Replace.String()
	s.Astray = canResize && s.Pod.Revision == s.Template && isAstray(s.pod, manifests.Resources(&s.asked.Spec)) &&
		len(lacking(given(s.pod), manifests.Resources(&target.Spec))) > 0
	s.Announcement = strings.HasPrefix(s.pod.Annotations[v1alpha1.AnnotationStop], s.tokenPrefix()) && !s.stopIsToCome()
	return s
}

// podRefused returns why the API server takes no pod of a ReplicaSet, if it does not.
func podRefused(set *appsv1.ReplicaSet) string {
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// podOf returns what is decided by of a pod but for its outcome. A second pod that
// no node takes yet is not broken: nobody waits for it.
func podOf(pod *corev1.Pod, revision string, second bool) rollout.Pod {
	p := rollout.Pod{Revision: revision, State: rollout.Starting, Going: pod.DeletionTimestamp != nil}
	if trouble := podTrouble(pod); trouble != nil {
		p.Why = trouble.message
		if !runs(pod) && !(second && trouble.reason == v1alpha1.ReasonUnschedulable) {
			p.State = rollout.Broken
		}
	}
	if isReady(pod) {
		p.State = rollout.Serving
	}
	return p
}

// endsContainer is how long a kubelet may take to make another container of a pod
// whose image was changed; one that has ended by itself it starts within that too.
const endsContainer = 10 * time.Second

// judge says what came of the last change of the shard's pod.
func (s *shard) judge(seen *observed) {
	agent, step := s.agent, s.step
	switch {
	case s.Pod.State != rollout.Serving:
	case s.stopIsToCome(), s.restartIsToCome(): // also when it was taken back: what failed serves still
	case step == nil || step.Revision != s.Pod.Revision || s.Pod.Revision == s.Template || step.Class <= rollout.Live:
		if agent != nil || startIsKnown(&seen.memcached.Status, s.Name, s.pod) {
			s.Pod.Outcome = rollout.Settled
		}
	case agent == nil:
	default:
		s.judgeRestart(seen.now)
	}
}

// restartIsToCome says whether memcached does not run with the pod's arguments yet,
// and nothing is known to keep it from that.
func (s *shard) restartIsToCome() bool {
	return s.agent != nil && s.agent.ArgumentsError == "" && s.step != nil && s.step.Revision == s.Pod.Revision && !s.hasArguments()
}

// hasArguments says whether memcached runs with the arguments that are on its pod,
// perhaps those of another release of the operator.
func (s *shard) hasArguments() bool {
	var words []string
	err := json.Unmarshal([]byte(s.pod.Annotations[v1alpha1.AnnotationArguments]), &words)
	return err != nil || slices.Equal(s.agent.Arguments, words)
}

// tellsOfArguments is how long an agent may take to read arguments: it looks five
// times a second, and the kubelet brings them within a second.
const tellsOfArguments = 5 * time.Second

// judgeRestart judges by what the agent tells of a memcached that was restarted.
func (s *shard) judgeRestart(now time.Time) {
	switch version := s.asked.Image.Version; {
	case version != "" && s.agent.Version != version:
		s.Pod.Outcome, s.Pod.Why = rollout.Wrong, "image "+s.asked.Image.Reference+" holds memcached "+s.agent.Version
	case s.agent.ArgumentsError != "" && now.Sub(s.step.At) > tellsOfArguments:
		s.Pod.Outcome, s.Pod.Why = rollout.Wrong, s.agent.ArgumentsError
	case !s.hasArguments():
	case s.agent.Start.Result == agentapi.StartCold:
		s.Pod.Outcome, s.Pod.Why = rollout.Cold, "it started empty: "+s.agent.Start.Reason
	default:
		s.Pod.Outcome = rollout.Settled
	}
}

// surges says whether the shard is to have two pods on its way to the target. A
// ReplicaSet that somebody deleted and left its pod is made again as shard 0 is,
// which begins no replacement.
func (s *shard) surges(target string) bool {
	takesOver := s.Next != nil && s.Next.State == rollout.Serving
	return s.pod != nil && s.Template == target && s.isReplacedBy(target) && s.Pod.Revision != target && s.Failed == "" && s.Forward.Class == rollout.Replace &&
		s.Pod.State != rollout.Broken && !s.Pod.Going && !(s.retired && takesOver)
}

// isReplacedBy says whether a replacement of the pod was begun that leads to the
// revision.
func (s *shard) isReplacedBy(revision string) bool {
	return s.onSet != nil && s.onSet.Class == rollout.Replace && s.onSet.Revision == revision
}

// change returns what it takes to bring the shard's pod to what is asked.
func (s *shard) change(m *v1alpha1.Memcached, to manifests.Asked, canResize bool) rollout.Change {
	version := ""
	if s.agent != nil {
		version = s.agent.Version
	}
	c := changeOf(s.asked, to, version, acceptsCold(m), canResize)
	if c.Resize != rollout.NotNeeded {
		c.Resize, c.ResizeWhy = hasResources(s.pod, manifests.Resources(&to.Spec))
		if c.Resize == rollout.Refused {
			c.Class, c.Resize = rollout.Replace, rollout.NotNeeded
			c.What += ", which starts it empty, as its node cannot give it the resources: " + c.ResizeWhy
		}
	}
	// Both: what was taken back may still be the last that the agent read.
	stop := s.pod.Annotations[v1alpha1.AnnotationStop]
	c.Announced = s.agent != nil && s.agent.AnnouncedStop == stop && strings.HasPrefix(stop, s.tokenPrefix()+to.Revision())
	return c
}

// sayAgain is how long an agent may take to learn of a stop: the kubelet brings it
// within a second, but can miss it until the pod changes again.
const sayAgain = 5 * time.Second

// token returns what announces the next stop of the pod's container on the way to
// what is asked: the one that does already, or a new one. It is for that container
// only and means nothing to the next one.
func (s *shard) token(to manifests.Asked, now time.Time) string {
	way := s.tokenPrefix() + to.Revision() + "-"
	stands := s.pod.Annotations[v1alpha1.AnnotationStop]
	if rest, ok := strings.CutPrefix(stands, way); ok {
		second, _, _ := strings.Cut(rest, "/")
		if at, err := strconv.ParseInt(second, 10, 64); err == nil && now.Sub(time.Unix(at, 0)).Abs() < sayAgain {
			return stands
		}
	}
	_, arguments := to.Arguments()
	return agentapi.AnnounceArguments(way+strconv.FormatInt(now.Unix(), 10), arguments)
}

// tokenPrefix begins each token for the container that runs.
func (s *shard) tokenPrefix() string {
	_, id, _ := strings.Cut(containerID(s.pod), "://")
	return id[:min(len(id), 12)] + "-"
}

// stopIsToCome says whether the pod has been changed and its container has not
// ended yet.
func (s *shard) stopIsToCome() bool {
	return s.step != nil && s.step.Class == rollout.Recreate && s.step.Container == containerID(s.pod)
}

// inputOf returns what is decided by.
func inputOf(seen *observed, shards []shard, target manifests.Asked) rollout.Input {
	m := seen.memcached
	in := rollout.Input{Target: target.Revision(), Paused: m.Spec.Paused, AcceptCold: acceptsCold(m), SinceLast: -1}
	for _, s := range shards {
		in.Shards = append(in.Shards, s.Shard)
	}
	for ordinal := range int(*m.Spec.Size) {
		name := manifests.ShardName(m.Name, ordinal)
		if !slices.ContainsFunc(shards, func(s shard) bool { return s.Name == name }) {
			in.Unmade = name
			break
		}
	}
	last := lastChanged(shards)
	if last != nil {
		in.SinceLast = max(seen.now.Sub(last.step.At), 0)
	}
	strategy := m.Spec.UpdateStrategy
	if strategy == nil {
		return in
	}
	in.MinBetween = time.Duration(ptr.Deref(strategy.MinSecondsBetweenShards, 0)) * time.Second
	var err error
	if in.OpensIn, err = opensIn(strategy.MaintenanceWindows, seen.now); err != nil {
		in.Invalid = err.Error()
	}
	in.Recovery = recoveryOf(strategy.HitRatioGate, last, in.Target, seen.now)
	return in
}

// lastChanged returns the shard that was changed last in a way that its clients
// may have felt, or nil.
func lastChanged(shards []shard) *shard {
	var last *shard
	for i := range shards {
		s := &shards[i]
		if s.step != nil && s.step.Class > rollout.Live && (last == nil || s.step.At.After(last.step.At)) {
			last = s
		}
	}
	return last
}

// recoveryOf returns how the clients of the shard do that was changed last, or nil
// when it is not waited for: nobody asked to, or too few requests came before the
// change to compare with, or it was changed long ago for another target, since when
// clients may have come to ask for other things.
func recoveryOf(gate *v1alpha1.HitRatioGate, last *shard, target string, now time.Time) *rollout.Recovery {
	if gate == nil || last == nil || last.step.Gets < int64(ptr.Deref(gate.MinRequests, 1000)) {
		return nil
	}
	r := &rollout.Recovery{
		Shard: last.Name, Before: float64(last.step.Hits) / float64(last.step.Gets),
		Share: float64(ptr.Deref(gate.Percent, 90)) / 100, MinRequests: int64(ptr.Deref(gate.MinRequests, 1000)),
		Waited: now.Sub(last.step.At), Timeout: time.Duration(ptr.Deref(gate.TimeoutSeconds, 600)) * time.Second,
		Continue: gate.WhenTimedOut == v1alpha1.ActionContinue,
	}
	if last.step.Revision != target && r.Waited >= r.Timeout {
		return nil
	}
	if last.agent != nil && last.agent.RecentGets > 0 {
		r.Requests, r.Now = last.agent.RecentGets, float64(last.agent.RecentHits)/float64(last.agent.RecentGets)
	}
	return r
}

// kept returns how many items the shards held before and after they were changed
// to the revision in place.
func kept(shards []shard, status v1alpha1.MemcachedStatus, revision string) (items, before int64) {
	for _, s := range shards {
		told, ok := shardNamed(status.Shards, s.Name)
		if ok && s.step != nil && s.step.Revision == revision && s.Pod.Revision == revision && status.Revisions[s.Name] == revision && told.Start == v1alpha1.StartWarm &&
			(s.step.Class == rollout.Restart || s.step.Class == rollout.Recreate) && told.ContainerID == containerID(s.pod) {
			items, before = items+min(told.Items, told.ItemsBefore), before+cmp.Or(told.ItemsBefore, told.Items)
		}
	}
	return items, before
}
