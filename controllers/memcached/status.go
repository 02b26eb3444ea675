package memcached

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// makeStatus returns the status of what was observed, planned and written.
func makeStatus(obs *observation, p plan, res result, now time.Time) v1alpha1.MemcachedStatus {
	m := obs.memcached
	size := int(*m.Spec.Size)
	s := v1alpha1.MemcachedStatus{
		ObservedGeneration: m.Generation,
		Image:              obs.image.Reference,
		DefaultImage:       obs.defaultImage,
		Selector:           labels.SelectorFromSet(resources.Labels(m.Name)).String(),
		Conditions:         slices.Clone(m.Status.Conditions),
		Bootstrap:          p.bootstrap.status,
	}
	if p.rejected != nil { // new pods get the previous image
		s.Image, s.DefaultImage = m.Status.Image, m.Status.DefaultImage
	}
	messages := 0
	for _, ordinal := range shardOrdinals(obs, res) {
		status := shardStatus(obs, p, res, resources.ShardName(m.Name, ordinal))
		if status.Message != "" {
			if messages++; messages > v1alpha1.MaxShardMessages {
				status.Message = ""
			}
		}
		s.Shards = append(s.Shards, status)
		if status.PodName != "" {
			s.Nodes = append(s.Nodes, status.PodName)
		}
		if ordinal >= size {
			continue
		}
		if status.Ready {
			s.ReadySize++
		}
		if status.Current {
			s.UpdatedSize++
		}
		key := resources.Key{Kind: resources.KindService, Name: status.Name}
		if service, exists := obs.objects[key]; exists && service.owner == ours || res.applied[key] {
			s.Servers = append(s.Servers, resources.Server(m.Namespace, status.Name))
		}
	}
	s.Size = int32(len(s.Shards)) //nolint:gosec // at most 1000 by the CRD, and those that exist
	s.Ready = fmt.Sprintf("%d/%d", s.ReadySize, size)
	s.Version = runningVersion(s.Shards, obs.image.Version, m.Status.Version, p.rejected != nil)
	if s.Discovery = p.discovery.status; s.Discovery == nil && (m.Spec.Paused || p.rejected != nil) {
		s.Discovery = m.Status.Discovery
	}
	s.Binding = bindingStatus(m, p.binding, res)
	s.External, s.TLS = externalStatus(obs), tlsStatus(obs)
	s.Update = updateStatus(obs, p, s, now)
	s.LastUpdate = updateCost(obs, p, &s, now)
	available, progressing, degraded := conditions(obs, p, res, s, firstProblem(obs, p, res, s))
	for _, c := range []metav1.Condition{readyCondition(available, progressing, degraded, s.Update), available, progressing, degraded} {
		c.ObservedGeneration = m.Generation
		c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second)) // the API stores seconds
		c.Message = text.Truncate(c.Message, v1alpha1.MaxMessage)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	s.Phase = phase(m, available, progressing, degraded)
	return s
}

// bindingStatus returns the status of a binding after the writes. Without a plan, it stays what it was.
func bindingStatus(m *v1alpha1.Memcached, p bindingPlan, res result) *v1alpha1.BindingStatus {
	switch secret := p.actions.Binding; {
	case !m.Spec.Binding.Enabled:
		return nil
	case p.status == nil:
		return m.Status.Binding
	case secret != nil && res.applied[keyOf(secret)]:
		return &v1alpha1.BindingStatus{Name: secret.Name, Size: *m.Spec.Size}
	default:
		return p.status
	}
}

// runningVersion returns the version that the shards run, with an arrow to the target while
// a shard runs another one. Without a valid target it stays what it was.
func runningVersion(shards []v1alpha1.ShardStatus, target, was string, rejected bool) string {
	if rejected {
		return was
	}
	for _, s := range shards {
		if s.Version != "" && target != "" && s.Version != target {
			return s.Version + " → " + target
		}
	}
	return target
}

// shardOrdinals returns the ordinals of the shards that exist or were just created, and of
// those whose ReplicaSet was deleted and will be recreated: their next start follows another.
func shardOrdinals(obs *observation, res result) []int {
	name := obs.memcached.Name
	var ordinals []int
	for key, applied := range res.applied {
		if ordinal, ok := resources.Ordinal(name, key.Name); ok && applied && key.Kind == resources.KindReplicaSet {
			ordinals = append(ordinals, ordinal)
		}
	}
	for _, s := range obs.memcached.Status.Shards {
		ordinal, ok := resources.Ordinal(name, s.Name)
		_, exists := obs.objects[resources.Key{Kind: resources.KindReplicaSet, Name: s.Name}]
		if ok && !exists && ordinal < int(*obs.memcached.Spec.Size) {
			ordinals = append(ordinals, ordinal)
		}
	}
	for key, o := range obs.objects {
		if ordinal, ok := resources.Ordinal(name, key.Name); ok && key.Kind == resources.KindReplicaSet && o.isShards() {
			ordinals = append(ordinals, ordinal)
		}
	}
	slices.Sort(ordinals)
	return slices.Compact(ordinals)
}

// shardStatus returns the status of one shard. It describes the last start until a newer one
// is known and its consequences, such as a refill, are recorded.
func shardStatus(obs *observation, p plan, res result, name string) v1alpha1.ShardStatus {
	last, _ := shard.StatusOf(&obs.memcached.Status, name)
	s := v1alpha1.ShardStatus{
		Name: name, Version: last.Version, AgentVersion: last.AgentVersion, Revision: last.Revision, Start: last.Start, ContainerID: last.ContainerID,
		Restart: last.Restart, StartedAt: last.StartedAt, Items: last.Items, ItemsBefore: last.ItemsBefore, GapMilliseconds: last.GapMilliseconds,
	}
	pods := obs.pods[name]
	if len(pods) == 0 {
		s.Message = messageNoPod
		return s
	}
	pod := pods[0]
	state := shard.Named(p.shards, name)
	if state != nil && state.Active != nil {
		pod = state.Active
		update := obs.updateRevision.Hash()
		s.Current = state.Rollout.Pod.Revision == update && state.Rollout.Template == update
	}
	s.PodName, s.NodeName, s.Ready = pod.Name, pod.Spec.NodeName, shard.IsReady(pod) && hasService(obs, res, name)
	if obs.unreachable[pod.Name] {
		s.AgentUnreachableSince = shard.AgentUnreachableSince(last, pod.Name, obs.now)
	}
	agent, answered := obs.agents[pod.Name]
	if answered && (state == nil || state.ReportsLatestStart()) && !refillPending(p.refill.refills, name, res) {
		s.Version, s.Start, s.ContainerID, s.Restart = agent.Version, v1alpha1.StartResult(agent.Start.Result), shard.ContainerID(pod), shard.RestartToken(agent.Restart)
		s.AgentVersion = text.Truncate(agent.AgentVersion, v1alpha1.MaxAgentVersion)
		s.Revision = pod.Annotations[annotations.Revision]
		s.StartedAt = ptr.To(v1alpha1.Time(agent.Start.At))
		s.Items, s.ItemsBefore = agent.Start.Items, agent.Start.ItemsBefore
		s.GapMilliseconds = int64(agent.Start.GapSeconds * 1000)
	}
	problem := shard.PodProblem(pod)
	switch {
	case problem != nil:
		s.Message = text.Truncate(problem.Message, v1alpha1.MaxShardMessage)
	case handoverProgress(obs, name) != "":
		s.Message = text.Truncate(handoverProgress(obs, name), v1alpha1.MaxShardMessage)
	case s.Ready:
	case shard.IsReady(pod):
		s.Message = "running, but no Service selects it"
	case shard.IsReadinessDelayed(pod, obs.now):
		s.Message = "running; a restore fills it before it becomes ready"
	default:
		s.Message = messageStarting
	}
	return s
}

// hasService reports whether a shard has the Service that clients connect to.
func hasService(obs *observation, res result, name string) bool {
	key := resources.Key{Kind: resources.KindService, Name: name}
	service, ok := obs.objects[key]
	return res.applied[key] || ok && service.isShards() && service.GetDeletionTimestamp() == nil
}

// statusWriter writes the status.
type statusWriter struct{ client client.StatusClient }

// write writes a status that has changed and returns the previous one, or nil if it wrote
// nothing: the status is the same, the Memcached doesn't exist any more, or, in a conflict,
// another writer was faster and the status has to be computed again.
func (w statusWriter) write(ctx context.Context, m *v1alpha1.Memcached, status v1alpha1.MemcachedStatus) (previous *v1alpha1.MemcachedStatus, conflict bool, err error) {
	if equality.Semantic.DeepEqual(m.Status, status) {
		return nil, false, nil
	}
	before := m.DeepCopy()
	m.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err = w.client.Status().Patch(ctx, m, patch, client.FieldOwner(v1alpha1.ManagedByValue))
	switch {
	case err == nil:
		return &before.Status, false, nil
	case apierrors.IsConflict(err):
		return nil, true, nil
	case apierrors.IsNotFound(err):
		return nil, false, nil
	default:
		return nil, false, fmt.Errorf("writing the status: %w", err)
	}
}
