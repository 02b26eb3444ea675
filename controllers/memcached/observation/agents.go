package observation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// AgentsToQuery returns the pods whose agents know something that the status doesn't: how
// memcached started, how an update proceeds, how the next shard to be updated performs, how many
// misses the last update caused, and which Secrets they can use.
// The agent of a shard in steady state is not queried; that of a pod that isn't ready only
// while another pod of the shard hands over its items, or while it copies items of other shards.
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
		if receiver := s.Receiver; receiver != nil {
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
		if last != nil && m.Spec.UpdateStrategy.HitRatioGate.IsEnabled() {
			query = append(query, last)
		}
	}
	query = slices.Concat(query, HitRatioPods(obs), secretPods(obs), scalingPods(obs))
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

// scalingPods returns the pods between which items move, those that will take part, those that purge items, and those whose
// request is withdrawn.
func scalingPods(obs *Observation) (pods []*corev1.Pod) {
	s, all := resources.ScalingOf(obs.Memcached), obs.Memcached.Status.Purge.IsActive()
	for i := range obs.Shards {
		o := &obs.Shards[i]
		if o.Active == nil || o.Active.Status.PodIP == "" || !o.IsRunning {
			continue
		}
		takesPart := all || s != nil && (s.Step == v1beta1.ScalingPreparing || resources.GetsKeys(obs.Memcached, s, o.Ordinal))
		if takesPart || o.Active.Annotations[annotations.Scaling] != "" {
			pods = append(pods, o.Active)
		}
	}
	return pods
}

// StartsEmpty reports whether an agent reported an empty start.
func StartsEmpty(obs *Observation) bool {
	for _, agent := range obs.Agents {
		if agent.Start.Result == agentwire.StartCold {
			return true
		}
	}
	return false
}
