package memcached

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

const (
	// agentRetryMin is the least time after which an agent that did not report its start is
	// queried again.
	agentRetryMin = time.Second
	// handoverRecheck is when to read the progress of a handover again.
	handoverRecheck = 5 * time.Second
	// hitRatioPoll is how often the agents are queried until the misses of an update are measured.
	hitRatioPoll = 10 * time.Second
)

// agentsToQuery returns the pods whose agents know something that the status doesn't: how
// memcached started, how an update proceeds, how the next shard to be updated performs, how many
// misses the last update caused, and which Secrets they can use.
// The agent of a shard in steady state is not queried; that of a pod that isn't ready only
// while a restore fills all shards, or another pod of the shard hands over its items.
func agentsToQuery(obs *observation) []*corev1.Pod {
	m, update := obs.memcached, obs.updateRevision.Hash()
	if obs.imageError != nil { // the shards keep their revision
		update = resources.NewPodRevision(&m.Spec, resources.Image{Reference: m.Status.Image}).Hash()
	}
	var (
		query                 []*corev1.Pod
		first, last, restarts *corev1.Pod
		lastUpdateAt          time.Time
	)
	for _, s := range obs.shards {
		pod := s.Active
		if receiver := s.Receiver(); receiver != nil {
			query = append(query, receiver)
		}
		if pod == nil || pod.Status.PodIP == "" || !s.IsReady && !(s.IsRunning && m.Status.Bootstrap.IsRunning()) {
			continue
		}
		revision := s.PodRevision.Hash()
		if revision != update && first == nil {
			first = pod
		} else if shard.CertificateRestart(pod, obs.secrets[pod.UID].Certificate) != "" {
			restarts = cmp.Or(restarts, pod)
		}
		if s.Record != nil && s.Record.At.After(lastUpdateAt) {
			last, lastUpdateAt = pod, s.Record.At
		}
		if !s.StartRecorded || revision != s.Template.Hash() || pod.Annotations[annotations.Stop] != "" {
			query = append(query, pod)
		}
	}
	if first = cmp.Or(first, restarts); first != nil {
		query = append(query, first)
		if last != nil && m.Spec.UpdateStrategy != nil && m.Spec.UpdateStrategy.HitRatioGate != nil {
			query = append(query, last)
		}
	}
	query = append(append(query, hitRatioPods(obs)...), secretPods(obs)...)
	slices.SortFunc(query, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(query)
}

// hitRatioPods returns the pods whose misses since the last update are yet to be measured.
func hitRatioPods(obs *observation) []*corev1.Pod {
	cost := obs.memcached.Status.LastUpdate
	if !shard.MeasuresHitRatio(cost, obs.now) || cost.Revision != obs.updateRevision.Hash() {
		return nil
	}
	var pods []*corev1.Pod
	for i := range obs.shards {
		if s := &obs.shards[i]; s.HadHitRatio(cost.Revision) {
			pods = append(pods, s.Active)
		}
	}
	return pods
}

// planAgentRetry queries agents again that did not answer, or did not report the start yet.
func planAgentRetry(obs *observation, bootstrap *v1alpha1.BootstrapStatus) Actions {
	var a Actions
	for _, s := range obs.shards {
		if s.Active == nil {
			continue
		}
		if pod := s.Receiver(); pod != nil {
			a.RequeueAfter = soonest(a.RequeueAfter, handoverPoll(obs, pod))
		}
		_, answered := obs.agents[s.Active.Name]
		starting := !s.StartRecorded && (s.IsReady || s.IsRunning && bootstrap.IsRunning())
		if obs.unreachable[s.Active.Name] || starting && !answered {
			a.RequeueAfter = soonest(a.RequeueAfter, max(s.AgentRetry(obs.now), agentRetryMin))
		}
	}
	return a
}

// handoverPoll returns when to query a pod again that receives the items of another one: soon until
// it is ready for them, as the operator deletes the other one then.
func handoverPoll(obs *observation, pod *corev1.Pod) time.Duration {
	if p := obs.receiving[pod.Name].Handover; p != nil && p.Pass > 0 {
		return handoverRecheck
	}
	return agentRetryMin
}

// planHitRatio queries the agents again until the misses of the last update are measured.
func planHitRatio(obs *observation) Actions {
	if len(hitRatioPods(obs)) == 0 {
		return Actions{}
	}
	return Actions{RequeueAfter: hitRatioPoll}
}
