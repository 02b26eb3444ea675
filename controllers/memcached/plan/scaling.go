package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/podresult"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// Items move when the number of shards changes: the targets, which get keys of other shards, copy them, and keep them equal while clients
// have either list. The status has a step before anything depends on it. By what the targets report, the next step follows. A problem that a
// target reports is final: that target gets no items, and the others don't wait for it. At the close, it deletes what it has of them.

const (
	// scalingPoll is how often the agents of the targets are queried, and switchPoll while clients get the new list.
	scalingPoll, switchPoll = 2 * time.Second, 30 * time.Second
	// discoverySwitch is after how many seconds all clients of auto discovery have read a list: they read it every minute, and the kubelet
	// of a pod can miss it for 90 seconds.
	discoverySwitch = 180
)

// requestedSteps are the steps that the targets are requested to complete.
var requestedSteps = map[v1beta1.ScalingStep]agentwire.ScalingStep{
	v1beta1.ScalingCopying: agentwire.ScalingCopy, v1beta1.ScalingPublishing: agentwire.ScalingPublished,
	v1beta1.ScalingWaiting: agentwire.ScalingPublished, v1beta1.ScalingClosing: agentwire.ScalingClose,
}

// planScaling decides how a change of the number of shards continues.
func planScaling(obs *observation.Observation, shards []shard.State, options resources.Options) Scaling {
	m := obs.Memcached
	p := Scaling{Status: m.Status.Scaling.DeepCopy(), Cold: resources.ColdScaling(m), requests: map[int]string{}}
	p.purge(obs, shards, options)
	if m.Spec.Paused || m.DeletionTimestamp != nil {
		return p
	}
	switch current := resources.ScalingOf(m).DeepCopy(); {
	case current != nil && p.Status == nil:
		p.Status = beginScaling(m, current.From, obs.Now)
	case current != nil && resources.ColdReason(m, current.From, current.To) != "":
		p.Status = current
		if waiting := awaitedMove(obs, shards, current); waiting != "" {
			current.Message, p.Actions.RequeueAfter = waiting, scalingPoll
		} else {
			p.finish(resources.ColdReason(m, current.From, current.To))
		}
	case current != nil:
		for ordinal := range int(current.To) {
			if step := requestedSteps[current.Step]; step != "" && resources.GetsKeys(m, current, ordinal) {
				p.requests[ordinal] = options.ScalingRequest(m, current, ordinal, step)
			}
		}
		p.Status, p.Actions.RequeueAfter = current, scalingPoll
		if isOutdated(obs, current, p.requests) { // the pods keep their requests until the status says what follows
			if current.Step == v1beta1.ScalingCopying {
				p.Status = beginScaling(m, current.From, obs.Now)
			} else {
				p.finish("spec.access.hashing has changed")
			}
			return p
		}
		p.advance(obs, shards, options)
	case p.Status == nil || m.Status.Size != p.Status.To || obs.HasRemains:
	case p.Status.To != resources.Size(m):
		p.Status = beginScaling(m, p.Status.To, obs.Now)
	default:
		p.Status = nil
	}
	if s := p.Status; s != nil {
		s.Message, s.Problem = text.Truncate(s.Message, v1beta1.MaxMessage), text.Truncate(s.Problem, v1beta1.MaxMessage)
	}
	for ordinal, name := range obs.Names { // one that will be deleted doesn't serve before
		for _, pod := range obs.Pods[name] {
			if pod.DeletionTimestamp != nil || podresult.IsFinished(pod) {
				continue
			}
			if request, differs := requestTo(pod, p.requests[ordinal], obs.Answers[pod.Name].Scaling, obs.Now); differs {
				p.Actions.Patch = join(p.Actions.Patch, Annotate(pod, annotations.Scaling, orNil(request)))
			} else if p.requests[ordinal] == "" && pod.Annotations[annotations.Scaling] != "" {
				p.Actions.RequeueAfter = Soonest(p.Actions.RequeueAfter, scalingPoll)
			}
			if want := resources.ListedAs(m, ordinal); want != "" && pod.Labels[annotations.Listed] != want { // a former one has no effect
				p.Actions.Patch = join(p.Actions.Patch, PodPatch{Pod: pod, Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{annotations.Listed: want}}}})
			}
		}
	}
	return p
}

// isOutdated reports whether a pod has the request of this change with other servers or another ring than now, as an agent verifies a ring
// only before it copies by it: it would delete by another one the items that clients use. Or whether a new shard, which the operator didn't
// see when this change began, copies for an earlier one, and so has items of other keys.
func isOutdated(obs *observation.Observation, current *v1beta1.ScalingStatus, requests map[int]string) bool {
	for ordinal, request := range requests {
		want, _ := agentwire.ParseScaling(request)
		for _, pod := range obs.Pods[obs.Names[ordinal]] {
			has, _ := agentwire.ParseScaling(pod.Annotations[annotations.Scaling])
			switch {
			case has == nil || has.ID == "" || pod.DeletionTimestamp != nil:
			case has.ID == want.ID && (has.Ring != want.Ring || !slices.Equal(has.From, want.From) || !slices.Equal(has.To, want.To)):
				return true
			case has.ID != want.ID && current.Step == v1beta1.ScalingCopying && ordinal >= int(current.From):
				return true
			}
		}
	}
	return false
}

// requestTo returns what to write to a pod, if it doesn't have the request that it should have. The kubelet can miss a request until the
// pod changes again or until it syncs the pod, after at most 90 seconds. So a request that the agent hasn't read is repeated. One without
// an ID withdraws the former one, and is removed when the agent has read it, or doesn't answer.
func requestTo(pod *corev1.Pod, want string, agent *agentwire.ScalingStatus, now time.Time) (request string, differs bool) {
	if want == "" && pod.Annotations[annotations.Scaling] == "" {
		return "", false
	}
	r, err := agentwire.ParseScaling(want)
	if err != nil || r == nil {
		r = &agentwire.Scaling{}
	}
	if has, err := agentwire.ParseScaling(pod.Annotations[annotations.Scaling]); err == nil && has != nil {
		awaited := now.Sub(time.Unix(has.Written, 0)) < shard.AnnounceRetry
		isRead := agent != nil && agent.ID == has.ID && agent.Requested == has.Step
		if has.Written = 0; has.String() == r.String() && (awaited || agent == nil || isRead) {
			return "", want == "" && (isRead || !awaited)
		}
	}
	r.Written = now.Unix()
	return r.String(), true
}

// beginScaling returns the change from a number of shards, whose items no change moves, to that of the spec.
func beginScaling(m *v1beta1.Memcached, from int32, now time.Time) *v1beta1.ScalingStatus {
	to := resources.Size(m)
	p := Scaling{Status: &v1beta1.ScalingStatus{ID: fmt.Sprintf("%d-%d-%d", from, to, now.UnixMilli()), From: from, To: to,
		Step: v1beta1.ScalingPreparing, StartTime: metav1.NewTime(now.Truncate(time.Second))}}
	if reason := resources.ColdReason(m, from, to); from == to {
		p.finish("")
	} else if reason != "" {
		p.finish(reason)
	}
	return p.Status
}

// finish leaves the shards of the new size, and nothing else. With a problem, clients miss items on their new shards.
func (p *Scaling) finish(problem string) {
	p.Status.Step, p.Status.Problem, p.Status.Message = v1beta1.ScalingFinishing, problem, ""
}

// advance sets the next step if the current one is completed, and the message.
func (p *Scaling) advance(obs *observation.Observation, shards []shard.State, options resources.Options) {
	m, s := obs.Memcached, p.Status
	is := func(steps ...v1beta1.ScalingStep) bool { return slices.Contains(steps, s.Step) }
	if s.To != resources.Size(m) && is(v1beta1.ScalingPreparing, v1beta1.ScalingCopying) {
		p.Status = beginScaling(m, s.From, obs.Now)
		return
	}
	publishing := fmt.Sprintf("publishing the list of %d shards", s.To)
	var reports targetReports
	if is(v1beta1.ScalingPreparing) {
		if reports = preparation(obs, shards); reports.waiting != "" {
			reports.waiting += "; to change the number of shards without the items, set spec.scaling.mode to Cold"
		}
		if len(options.ScalingRequest(m, s, 0, "")) > resources.MaxScalingRequest {
			reports.problems, reports.problem = reports.targets, "the names of the servers are too long"
		}
	} else {
		reports = reportsOf(obs, shards, s)
		if is(v1beta1.ScalingCopying) && reports.waiting == "" {
			reports.waiting = awaitedRestore(obs)
		}
		s.StaleMilliseconds = max(s.StaleMilliseconds, reports.staleMilliseconds)
	}
	s.Message = reports.waiting
	switch {
	case reports.problems == reports.targets && is(v1beta1.ScalingPreparing, v1beta1.ScalingCopying, v1beta1.ScalingPublishing):
		p.finish(reports.problem)
	case is(v1beta1.ScalingWaiting) && !isOffered(obs, s):
		s.Message = publishing
	case is(v1beta1.ScalingWaiting) && m.Status.Scaling.Message == publishing: // the time begins when clients can have the list
		s.PublishTime = new(metav1.NewTime(obs.Now.Truncate(time.Second)))
	case is(v1beta1.ScalingWaiting):
		at, why := switchedAt(obs, s)
		s.Message, p.WaitsForUser, p.Actions.RequeueAfter = why, at.IsZero(), switchPoll
		if left := at.Sub(obs.Now); left > 0 {
			p.Actions.RequeueAfter = min(left, switchPoll)
		} else if !at.IsZero() {
			s.Step, s.Message = v1beta1.ScalingClosing, ""
		}
	case reports.waiting != "":
		if is(v1beta1.ScalingPreparing) && !reports.polls { // a watch announces the rest
			p.Actions.RequeueAfter = 0
		}
	case is(v1beta1.ScalingPreparing):
		s.Step = v1beta1.ScalingCopying
	case is(v1beta1.ScalingCopying):
		s.Step, s.Moved = v1beta1.ScalingPublishing, reports.moved
	case is(v1beta1.ScalingPublishing):
		s.Step, s.PublishTime = v1beta1.ScalingWaiting, new(metav1.NewTime(obs.Now.Truncate(time.Second)))
	default:
		s.Deleted, s.Purged = reports.deleted, reports.purged
		p.finish(reports.problem)
	}
}

// targetReports is what the agents of the targets report.
type targetReports struct {
	targets, problems int
	// polls is whether a step waits for the answer of an agent.
	polls bool
	// problem of the first target that has one, and what a step waits for; empty for none.
	problem, waiting       string
	moved, deleted, purged int64
	staleMilliseconds      int64
}

// preparation returns what keeps the shards from taking part.
func preparation(obs *observation.Observation, shards []shard.State) targetReports {
	r := targetReports{targets: len(obs.Names)}
	if extras := planDeletions(obs, 0).ScaleIn; len(extras) > 0 { // a new shard of an earlier attempt may serve already
		r.waiting = fmt.Sprintf("waiting until %s is deleted", resources.KeyOf(extras[0]))
	}
	for _, name := range obs.Names {
		s := shard.Named(shards, name)
		if s == nil || !isSettled(s.Rollout) {
			r.waiting = fmt.Sprintf("waiting for shard %s", name)
			continue
		}
		agent, answered := obs.Answers[s.Active.Name]
		switch {
		case !resources.CanReceive(s.Active):
			r.problems = r.targets
			r.problem = fmt.Sprintf("pod %s was created without handovers; replace the pods of all shards, which loses their items: kubectl delete pod %[1]s -n %s", s.Active.Name, s.Active.Namespace)
		case answered && agent.Scaling == nil && agent.HandoverPort != 0:
			r.problems = r.targets
			r.problem = fmt.Sprintf("pod %s was created by an older release of the operator; replace the pods of all shards: kubectl annotate pod %[1]s -n %s %s=1", s.Active.Name, s.Active.Namespace, v1beta1.AnnotationMove)
		case !answered || agent.Scaling == nil:
			r.waiting, r.polls = fmt.Sprintf("waiting for the agent in pod %s", s.Active.Name), true
		}
	}
	return r
}

// isSettled reports whether a shard serves with its only pod, and no update of it is in progress.
func isSettled(s rollout.Shard) bool {
	return s.Pod.State == rollout.Serving && s.Pod.Outcome != rollout.Pending && !s.Pod.Terminating && s.Next == nil && !s.PredecessorTerminating && s.Pod.Revision == s.Template
}

// reportsOf returns what the targets report of the current step.
func reportsOf(obs *observation.Observation, shards []shard.State, scaling *v1beta1.ScalingStatus) (r targetReports) {
	order := []agentwire.ScalingStep{agentwire.ScalingCopy, agentwire.ScalingPublished, agentwire.ScalingClose}
	var total int64
	var failure, waiting string
	for ordinal := range int(scaling.To) {
		if !resources.GetsKeys(obs.Memcached, scaling, ordinal) {
			continue
		}
		r.targets++
		name := resources.ShardName(obs.Memcached.Name, ordinal)
		s := shard.Named(shards, name)
		report := reportOf(obs, s, scaling.ID)
		r.moved, total = r.moved+report.Moved, total+max(report.Total, report.Moved)
		r.deleted, r.purged = r.deleted+report.Deleted, r.purged+report.Purged
		r.staleMilliseconds = max(r.staleMilliseconds, int64(report.StaleSeconds*1000))
		isReached := slices.Index(order, report.Step) >= slices.Index(order, requestedSteps[scaling.Step])
		if report.Problem != "" {
			r.problems++
			r.problem = fmt.Sprintf("shard %s: %s", name, report.Problem)
		}
		switch {
		case report.Problem != "" && (scaling.Step != v1beta1.ScalingClosing || !report.Forgets):
		case !isReached, scaling.Step == v1beta1.ScalingPublishing && !s.IsReady:
			waiting = name
			if report.Error != "" {
				failure = fmt.Sprintf("; shard %s: %s", name, report.Error)
			}
		}
	}
	switch {
	case waiting == "":
	case scaling.Step == v1beta1.ScalingCopying && total > 0:
		r.waiting = fmt.Sprintf("copied %s of %s items%s", text.Percent(min(r.moved, total), total), text.Thousands(total), failure)
	default:
		r.waiting = fmt.Sprintf("waiting for shard %s%s", waiting, failure)
	}
	return r
}

// reportOf returns what the agent of a shard, if any, reports of a request.
func reportOf(obs *observation.Observation, s *shard.State, id string) agentwire.ScalingStatus {
	if s != nil && s.Active != nil && s.Active.DeletionTimestamp == nil {
		if agent := obs.Answers[s.Active.Name]; agent.Scaling != nil && agent.Scaling.ID == id {
			return *agent.Scaling
		}
	}
	return agentwire.ScalingStatus{}
}

// awaitedMove returns that a shard still follows the request to copy; empty if none does. Without the request, it deletes what it has copied,
// and clients must not use these keys there before. One that doesn't answer isn't awaited.
func awaitedMove(obs *observation.Observation, shards []shard.State, current *v1beta1.ScalingStatus) string {
	if current.Step != v1beta1.ScalingCopying {
		return ""
	}
	for _, name := range obs.Names {
		if reportOf(obs, shard.Named(shards, name), current.ID).ID != "" {
			return fmt.Sprintf("waiting until shard %s has deleted what it has copied", name)
		}
	}
	return ""
}

// awaitedBackup returns that a backup reads items which would be deleted; empty if none does.
func awaitedBackup(obs *observation.Observation) string {
	var names []string
	for _, b := range obs.Backups {
		if b.IsActive(obs.Now) {
			names = append(names, b.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("waiting until MemcachedBackup %s has finished", slices.Min(names))
}

// awaitedRestore returns that a restore writes items; empty if none does. What it writes to one of two shards that are compared would be
// deleted.
func awaitedRestore(obs *observation.Observation) string {
	if name := activeRestore(obs); name != "" {
		return fmt.Sprintf("waiting until MemcachedRestore %s has finished", name)
	}
	return ""
}

// activeRestore returns the first restore, by name, that writes items; empty if none does.
func activeRestore(obs *observation.Observation) (first string) {
	for name, o := range obs.Restores {
		if o.APIObject.(*v1beta1.MemcachedRestore).IsActive(obs.Now) && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

// isOffered reports whether clients can get the new list: from the status, from auto discovery, and from the records of the headless
// Service.
func isOffered(obs *observation.Observation, s *v1beta1.ScalingStatus) bool {
	m, headless := obs.Memcached, obs.Objects[resources.HeadlessKey(obs.Memcached)]
	if m.Spec.Access.Discovery.IsEnabled() && (m.Status.Discovery == nil || m.Status.Discovery.Size != s.To) {
		return false
	}
	service, ok := headless.APIObject.(*corev1.Service)
	return len(m.Status.Servers) == int(s.To) && (headless.Owner == observation.Foreign || ok && service.Spec.Selector[annotations.Listed] == resources.ListedAs(m, 0))
}

// switchedAt returns when no client has the former list; zero until the user says so. why describes what that depends on.
func switchedAt(obs *observation.Observation, s *v1beta1.ScalingStatus) (at time.Time, why string) {
	m, since := obs.Memcached, s.PublishTime.Time
	discovers, published := m.Spec.Access.Discovery.IsEnabled(), m.Status.Discovery
	switch transfer := cmp.Or(awaitedBackup(obs), awaitedRestore(obs)); {
	case transfer != "":
		return obs.Now.Add(switchPoll), transfer
	case m.Annotations[v1beta1.AnnotationScaled] == s.ID:
		return obs.Now, ""
	case discovers && published.LastChangeTime.After(since):
		since = published.LastChangeTime.Time
	case m.Spec.Scaling.SwitchSeconds == nil && !discovers:
		return time.Time{}, fmt.Sprintf("give all clients the new list in status.servers, and then run: kubectl annotate memcached %s -n %s %s=%s --overwrite", m.Name, m.Namespace, v1beta1.AnnotationScaled, s.ID)
	}
	at = since.Add(v1beta1.Seconds(m.Spec.Scaling.SwitchSeconds, discoverySwitch))
	return at, "all clients have the new list in status.servers at " + at.UTC().Format(time.RFC3339)
}

// orNil returns the value of an annotation in a patch, which removes an empty one.
func orNil(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// Scaling is how a change of the number of shards continues.
type Scaling struct {
	// Status to report; nil if no items move.
	Status *v1beta1.ScalingStatus
	// Purge is what to report of the annotation for a purge; nil without it.
	Purge *v1beta1.PurgeStatus
	// WaitsForUser is whether only the user knows when the next step follows.
	WaitsForUser bool
	// Cold is why no items move although the number of shards changes; empty if they do, or if it doesn't.
	Cold    string
	Actions Actions
	// requests of the pods of targets, or those that purge items, by ordinal.
	requests map[int]string
}
