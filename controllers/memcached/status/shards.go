package status

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// shardOrdinals returns the ordinals of the shards that exist or were just created, and of
// those whose ReplicaSet was deleted and will be recreated: their next start follows another.
func shardOrdinals(obs *observation.Observation, res plan.Result) []int {
	name := obs.Memcached.Name
	var ordinals []int
	for key, applied := range res.Applied {
		if ordinal, ok := resources.Ordinal(name, key.Name); ok && applied && key.Kind == resources.KindReplicaSet {
			ordinals = append(ordinals, ordinal)
		}
	}
	for _, s := range obs.Memcached.Status.Shards {
		ordinal, ok := resources.Ordinal(name, s.Name)
		_, exists := obs.Objects[resources.Key{Kind: resources.KindReplicaSet, Name: s.Name}]
		if ok && !exists && ordinal < resources.SizesOf(obs.Memcached).Exist {
			ordinals = append(ordinals, ordinal)
		}
	}
	for key, o := range obs.Objects {
		if ordinal, ok := resources.Ordinal(name, key.Name); ok && key.Kind == resources.KindReplicaSet && o.IsManaged() {
			ordinals = append(ordinals, ordinal)
		}
	}
	slices.Sort(ordinals)
	return slices.Compact(ordinals)
}

// shardStatus returns the status of one shard. It describes the last start until a newer one
// is known and its consequences, such as a refill, are recorded.
func shardStatus(obs *observation.Observation, p plan.Plan, res plan.Result, name string) v1beta1.ShardStatus {
	last, _ := shard.StatusOf(&obs.Memcached.Status, name)
	s := v1beta1.ShardStatus{
		Name: name, Version: last.Version, AgentVersion: last.AgentVersion, Revision: last.Revision, StartResult: last.StartResult, ContainerID: last.ContainerID,
		RestartAnnotation: last.RestartAnnotation, StartTime: last.StartTime, Items: last.Items, ItemsBefore: last.ItemsBefore, GapMilliseconds: last.GapMilliseconds,
	}
	pods := obs.Pods[name]
	state := shard.Named(p.Shards, name)
	missing := missingPod(state)
	if len(pods) == 0 {
		if s.Message = "no pod yet"; missing != nil {
			s.Message = text.Truncate(missing.Message, v1beta1.MaxShardMessage)
		}
		return s
	}
	pod := pods[0]
	if state != nil && state.Active != nil {
		pod = state.Active
		update := obs.UpdateRevision.Hash()
		s.UpToDate = state.Rollout.Pod.Revision == update && state.Rollout.Template == update
	}
	s.PodName, s.NodeName, s.Ready = pod.Name, pod.Spec.NodeName, shard.IsReady(pod) && hasService(obs, res, name)
	if obs.Unreachable[pod.Name] {
		s.AgentUnreachableTime = shard.AgentUnreachableTime(last, pod.Name, obs.Now)
	}
	agent, answered := obs.Agents[pod.Name]
	if answered && (state == nil || state.ReportsLatestStart()) && !refillPending(obs, p.Refills.Lost, name, res) {
		s.Version, s.StartResult, s.ContainerID, s.RestartAnnotation = agent.Version, v1beta1.StartResult(agent.Start.Result), shard.ContainerID(pod), shard.RestartInStatus(agent.Restart)
		s.AgentVersion = text.Truncate(agent.AgentVersion, v1beta1.MaxAgentVersion)
		s.Revision = pod.Annotations[annotations.Revision]
		s.StartTime = ptr.To(v1beta1.Time(agent.Start.At))
		s.Items, s.ItemsBefore = agent.Start.Items, agent.Start.ItemsBefore
		s.GapMilliseconds = int64(agent.Start.GapSeconds * 1000)
	}
	problem := cmp.Or(shard.PodProblem(pod), missing)
	switch {
	case problem != nil:
		s.Message = text.Truncate(problem.Message, v1beta1.MaxShardMessage)
	case handoverProgress(obs, name) != "":
		s.Message = text.Truncate(handoverProgress(obs, name), v1beta1.MaxShardMessage)
	case s.Ready:
	case shard.IsReady(pod):
		s.Message = "running, but no Service selects it"
	default:
		s.Message = "starting"
	}
	return s
}

// hasService reports whether a shard has the Service that clients connect to.
func hasService(obs *observation.Observation, res plan.Result, name string) bool {
	key := resources.Key{Kind: resources.KindService, Name: name}
	service, ok := obs.Objects[key]
	return res.Applied[key] || ok && service.IsManaged() && service.GetDeletionTimestamp() == nil
}

// handoverProgress describes how far a handover from one pod of a shard to another is; empty when
// there is none.
func handoverProgress(obs *observation.Observation, name string) string {
	for _, pod := range obs.Pods[name] {
		agent := obs.Answers[pod.Name]
		switch {
		case !shard.IsReceiving(agent):
		case obs.Memcached.Status.Scaling != nil && agent.Scaling != nil && agent.Scaling.ID != "":
			return "pod " + pod.Name + " gets the items of other shards"
		case agent.Phase == agentwire.PhaseFollowing:
			return "pod " + pod.Name + " serves new connections, and the previous pod those that are open"
		case agent.Handover == nil || agent.Handover.Total <= 0:
			return "pod " + pod.Name + " waits for the items"
		default:
			return fmt.Sprintf("pod %s received %s of %s items", pod.Name,
				text.Percent(min(agent.Handover.Items, agent.Handover.Total), agent.Handover.Total), text.Thousands(agent.Handover.Total))
		}
	}
	return ""
}

// refillPending reports whether the restore of a lost shard doesn't exist yet, as it was rejected, or nothing was written. The
// status doesn't describe the loss then, so that the operator tries again.
func refillPending(obs *observation.Observation, refills []plan.Refill, name string, res plan.Result) bool {
	return slices.ContainsFunc(refills, func(r plan.Refill) bool {
		_, exists := obs.Restores[r.Restore]
		return r.Shard == name && r.Restore != "" && !exists && !res.Applied[resources.Key{Kind: resources.KindRestore, Name: r.Restore}]
	})
}
