package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

const (
	// handoverRecheck is when to read the progress of a handover again.
	handoverRecheck = 5 * time.Second
	// HitRatioPoll is how often the agents are queried until the misses of an update are measured.
	HitRatioPoll = 10 * time.Second
)

// AgentsToQuery returns the pods whose agents know something that the status doesn't: how
// memcached started, how an update proceeds, how the next shard to be updated performs, how many
// misses the last update caused, and which Secrets they can use.
// The agent of a shard in steady state is not queried; that of a pod that isn't ready only
// while another pod of the shard hands over its items.
func AgentsToQuery(obs *Observation) []*corev1.Pod {
	m, update := obs.Memcached, obs.UpdateRevision.Hash()
	if obs.ImageError != nil { // the shards keep their revision
		update = resources.NewPodRevision(&m.Spec, resources.Image{Reference: m.Status.Image}).Hash()
	}
	var (
		query                 []*corev1.Pod
		first, last, restarts *corev1.Pod
		lastUpdateAt          time.Time
	)
	for _, s := range obs.Shards {
		pod := s.Active
		if receiver := s.Receiver(); receiver != nil {
			query = append(query, receiver)
		}
		if pod == nil || pod.Status.PodIP == "" || !s.IsReady {
			continue
		}
		revision := s.PodRevision.Hash()
		if revision != update && first == nil {
			first = pod
		} else if shard.CertificateRestart(pod, obs.Secrets[pod.UID].Certificate) != "" {
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
	query = append(append(query, HitRatioPods(obs)...), secretPods(obs)...)
	slices.SortFunc(query, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(query)
}

// HitRatioPods returns the pods whose misses since the last update are yet to be measured.
func HitRatioPods(obs *Observation) []*corev1.Pod {
	cost := obs.Memcached.Status.LastUpdate
	if !shard.MeasuresHitRatio(cost, obs.Now) || cost.Revision != obs.UpdateRevision.Hash() {
		return nil
	}
	var pods []*corev1.Pod
	for i := range obs.Shards {
		if s := &obs.Shards[i]; s.HadHitRatio(cost.Revision) {
			pods = append(pods, s.Active)
		}
	}
	return pods
}

// planAgentRetry queries agents again that did not answer, did not report the start yet, or receive
// items, and all of them until the misses of the last update are measured.
func planAgentRetry(obs *Observation) Actions {
	var waits []time.Duration
	if len(HitRatioPods(obs)) > 0 {
		waits = append(waits, HitRatioPoll)
	}
	for _, s := range obs.Shards {
		if s.Active == nil {
			continue
		}
		if pod := s.Receiver(); pod != nil {
			wait := AgentRetryMin // soon until it is ready for the items, as the operator deletes the other pod then
			if p := obs.Receiving[pod.Name].Handover; p != nil && p.Pass > 0 {
				wait = handoverRecheck
			}
			waits = append(waits, wait)
		}
		_, answered := obs.Agents[s.Active.Name]
		starting := !s.StartRecorded && s.IsReady
		if obs.Unreachable[s.Active.Name] || starting && !answered {
			waits = append(waits, max(s.AgentRetry(obs.Now), AgentRetryMin))
		}
	}
	return Actions{RequeueAfter: Soonest(waits...)}
}
