package memcached

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// maxMessage bounds a condition's message, in bytes; the API allows 32 KiB, a
// person reads less.
const maxMessage = 1024

// makeStatus tells what was seen, what was planned and what came of it.
func makeStatus(seen *observed, p plan, a applied, now time.Time) v1alpha1.MemcachedStatus {
	m := seen.memcached
	want := int(*m.Spec.Size)
	s := v1alpha1.MemcachedStatus{
		ObservedGeneration: m.Generation,
		Version:            p.image.Version,
		Image:              p.image.Reference,
		Selector:           labels.SelectorFromSet(manifests.Labels(m.Name)).String(),
		Conditions:         slices.Clone(m.Status.Conditions),
	}
	if p.refused != nil { // new pods get what they got before
		s.Version, s.Image = m.Status.Version, m.Status.Image
	}
	for _, ordinal := range shardOrdinals(seen) {
		shard := shardStatus(seen, p, manifests.ShardName(m.Name, ordinal))
		s.Shards = append(s.Shards, shard)
		if shard.Pod != "" {
			s.Nodes = append(s.Nodes, shard.Pod)
		}
		if shard.Ready && ordinal < want {
			s.ReadySize++
		}
		service, ok := seen.objects[manifests.Key{Kind: manifests.KindService, Name: shard.Name}]
		if ok && service.owner == ours && ordinal < want {
			s.Servers = append(s.Servers, manifests.Server(m.Namespace, shard.Name))
		}
	}
	s.Size = int32(len(s.Shards)) //nolint:gosec // bounded by the CRD's 1000 and what exists
	s.Ready = fmt.Sprintf("%d/%d", s.ReadySize, want)

	available, progressing, degraded := conditions(seen, p, a, s)
	for _, c := range []metav1.Condition{available, progressing, degraded} {
		c.ObservedGeneration = m.Generation
		c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second)) // the API keeps seconds
		c.Message = bounded(c.Message)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	s.Phase = phase(m, progressing, degraded)
	return s
}

// shardOrdinals returns the ordinals of the shards that exist.
func shardOrdinals(seen *observed) []int {
	var ordinals []int
	for key, o := range seen.objects {
		if ordinal, ok := manifests.Ordinal(seen.memcached.Name, key.Name); ok && key.Kind == manifests.KindReplicaSet &&
			(o.owner == ours || o.owner == orphaned) {
			ordinals = append(ordinals, ordinal)
		}
	}
	slices.Sort(ordinals)
	return ordinals
}

// shardStatus tells of one shard. What it knew of the last start it tells on
// until a newer start is known.
func shardStatus(seen *observed, p plan, name string) v1alpha1.ShardStatus {
	s := v1alpha1.ShardStatus{Name: name}
	if last, ok := shardNamed(seen.memcached.Status.Shards, name); ok {
		s.Version, s.Start, s.ContainerID, s.Restart = last.Version, last.Start, last.ContainerID, last.Restart
		s.StartedAt, s.Items, s.ItemsBefore = last.StartedAt, last.Items, last.ItemsBefore
	}
	pods := seen.pods[name]
	if len(pods) == 0 {
		s.Message = "no pod yet"
		return s
	}
	pod := pods[0]
	s.Pod, s.Node, s.Ready = pod.Name, pod.Spec.NodeName, isReady(pod)
	s.Current = pod.Annotations[v1alpha1.AnnotationRevision] == p.revision
	if agent, ok := seen.agents[pod.Name]; ok {
		s.Version, s.Start, s.ContainerID, s.Restart = agent.Version, v1alpha1.StartResult(agent.Start.Result), containerID(pod), agent.Restart
		s.StartedAt = &metav1.Time{Time: agent.Start.At.Truncate(time.Second)}
		s.Items, s.ItemsBefore = agent.Start.Items, agent.Start.ItemsBefore
	}
	if trouble := podTrouble(pod); trouble != nil {
		s.Message = bounded(trouble.message)
	} else if !s.Ready {
		s.Message = "starting"
	}
	return s
}

// shardNamed returns the shard of that name.
func shardNamed(shards []v1alpha1.ShardStatus, name string) (v1alpha1.ShardStatus, bool) {
	i := slices.IndexFunc(shards, func(s v1alpha1.ShardStatus) bool { return s.Name == name })
	if i < 0 {
		return v1alpha1.ShardStatus{}, false
	}
	return shards[i], true
}

// conditions returns Available, Progressing and Degraded.
func conditions(seen *observed, p plan, a applied, s v1alpha1.MemcachedStatus) (available, progressing, degraded metav1.Condition) {
	m := seen.memcached
	want := *m.Spec.Size
	unready := unreadyShards(s, int(want))

	available = metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}
	switch {
	case want == 0:
		available.Reason, available.Message = v1alpha1.ReasonNoShards, "no shard was asked for: spec.size is 0"
	case s.ReadySize == want:
		available.Status, available.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady
		available.Message = fmt.Sprintf("%d of %d shards serve", s.ReadySize, want)
	default:
		available.Reason = v1alpha1.ReasonShardsNotReady
		available.Message = fmt.Sprintf("%d of %d shards serve; not %s", s.ReadySize, want, strings.Join(unready, ", "))
	}

	progressing = metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue}
	outdated := outdatedShards(s)
	switch {
	case m.DeletionTimestamp != nil:
		progressing.Reason, progressing.Message = v1alpha1.ReasonDeleting, "Kubernetes ends the shards"
	case m.Spec.Paused:
		progressing.Status, progressing.Reason = metav1.ConditionFalse, v1alpha1.ReasonPaused
		progressing.Message = "nothing is changed until spec.paused is false"
	case len(p.leftovers) > 0:
		progressing.Reason = v1alpha1.ReasonWaitingForOwner
		progressing.Message = fmt.Sprintf("waiting until Kubernetes has ended %s of a deleted Memcached of this name", joinKeys(p.leftovers))
	case s.Size < want && p.refused == nil:
		progressing.Reason, progressing.Message = v1alpha1.ReasonScalingOut, fmt.Sprintf("from %d to %d shards", s.Size, want)
	case s.Size > want && p.refused == nil:
		progressing.Reason, progressing.Message = v1alpha1.ReasonScalingIn, fmt.Sprintf("from %d to %d shards", s.Size, want)
	case len(unready) > 0:
		progressing.Reason, progressing.Message = v1alpha1.ReasonShardsStarting, "waiting for "+strings.Join(unready, ", ")
	case len(outdated) > 0:
		progressing.Status, progressing.Reason = metav1.ConditionFalse, v1alpha1.ReasonShardsOutdated
		progressing.Message = fmt.Sprintf("%s still run what was asked for before, and keep their items; the change reaches a shard when its pod is next made", strings.Join(outdated, ", "))
	default:
		progressing.Status, progressing.Reason = metav1.ConditionFalse, v1alpha1.ReasonSettled
		progressing.Message = "everything is as it was asked for"
	}

	degraded = metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonAsExpected, Message: "nothing needs a person"}
	if trouble := worst(seen, p, a, s); trouble != nil {
		degraded.Status, degraded.Reason, degraded.Message = metav1.ConditionTrue, trouble.reason, trouble.message
	}
	return available, progressing, degraded
}

// worst returns the first problem that a person has to look at, in a fixed order:
// of the spec, of objects, of shards by ordinal.
func worst(seen *observed, p plan, a applied, s v1alpha1.MemcachedStatus) *problem {
	switch {
	case p.refused != nil:
		return p.refused
	case len(p.conflicts) > 0:
		return &problem{v1alpha1.ReasonNameConflict,
			fmt.Sprintf("%s exists and is not this Memcached's; it is left alone: delete it or choose another name for the Memcached", joinKeys(p.conflicts))}
	case len(a.refusals) > 0:
		return &problem{v1alpha1.ReasonApplyRefused, "the API server refused " + a.refusals[0].Error()}
	case len(a.failures) > 0:
		return &problem{v1alpha1.ReasonApplyRefused, a.failures[0].Error() + "; trying again"}
	}
	for _, shard := range s.Shards {
		for _, pod := range seen.pods[shard.Name] {
			if trouble := podTrouble(pod); trouble != nil && !shard.Ready {
				return &problem{trouble.reason, fmt.Sprintf("shard %s: %s", shard.Name, trouble.message)}
			}
		}
	}
	for _, shard := range s.Shards {
		if shard.Ready && shard.Current && shard.Version != "" && p.image.Version != "" && shard.Version != p.image.Version {
			return &problem{v1alpha1.ReasonVersionMismatch,
				fmt.Sprintf("shard %s: image %s holds memcached %s, not %s as it says", shard.Name, p.image.Reference, shard.Version, p.image.Version)}
		}
	}
	return nil
}

// phase returns the conditions in one word.
func phase(m *v1alpha1.Memcached, progressing, degraded metav1.Condition) v1alpha1.Phase {
	switch {
	case m.DeletionTimestamp != nil:
		return v1alpha1.PhaseDeleting
	case degraded.Status == metav1.ConditionTrue:
		return v1alpha1.PhaseDegraded
	case m.Spec.Paused:
		return v1alpha1.PhasePaused
	case progressing.Status == metav1.ConditionTrue:
		return v1alpha1.PhaseProgressing
	default:
		return v1alpha1.PhaseRunning
	}
}

// unreadyShards returns the names of the shards, of those asked for, that do not
// serve.
func unreadyShards(s v1alpha1.MemcachedStatus, want int) []string {
	var names []string
	for _, shard := range s.Shards[:min(want, len(s.Shards))] {
		if !shard.Ready {
			names = append(names, shard.Name)
		}
	}
	return names
}

// outdatedShards returns the names of the shards that run what was asked for
// before.
func outdatedShards(s v1alpha1.MemcachedStatus) []string {
	var names []string
	for _, shard := range s.Shards {
		if shard.Pod != "" && !shard.Current {
			names = append(names, shard.Name)
		}
	}
	return names
}

func joinKeys(keys []manifests.Key) string {
	words := make([]string, len(keys))
	for i, key := range keys {
		words[i] = key.String()
	}
	return strings.Join(words, ", ")
}

func bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// writeStatus writes the status if it changed and, once it stands, the events
// that tell of the change.
func (r *Reconciler) writeStatus(ctx context.Context, m *v1alpha1.Memcached, next v1alpha1.MemcachedStatus) error {
	if equality.Semantic.DeepEqual(m.Status, next) {
		return nil
	}
	before := m.DeepCopy()
	m.Status = next
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	switch err := r.Client.Status().Patch(ctx, m, patch, client.FieldOwner(v1alpha1.ManagedByValue)); {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil // it is gone, or it changed: the watch tells, and the next reconcile sees it
	case err != nil:
		return fmt.Errorf("writing the status: %w", err)
	}
	for _, e := range eventsOf(before, next) {
		r.Recorder.Eventf(m, nil, e.kind, e.reason, "Reconcile", "%s", e.message)
	}
	return nil
}

// event is one to record.
type event struct{ kind, reason, message string }

// eventsOf returns what a person wants to hear of, from one status to the next.
func eventsOf(m *v1alpha1.Memcached, next v1alpha1.MemcachedStatus) []event {
	var events []event
	was := m.Status
	if was.ObservedGeneration != 0 && was.Size != next.Size {
		events = append(events, event{corev1.EventTypeNormal, v1alpha1.EventScaled, fmt.Sprintf("from %d to %d shards", was.Size, next.Size)})
	}
	for _, shard := range next.Shards {
		last, known := shardNamed(was.Shards, shard.Name)
		switch {
		case shard.Ready && !last.Ready:
			events = append(events, event{corev1.EventTypeNormal, v1alpha1.EventShardReady, fmt.Sprintf("shard %s serves from pod %s", shard.Name, shard.Pod)})
		case !shard.Ready && last.Ready:
			events = append(events, event{corev1.EventTypeWarning, v1alpha1.EventShardNotReady, fmt.Sprintf("shard %s does not serve: %s", shard.Name, cmp.Or(shard.Message, "not ready"))})
		}
		again := known && last.Start != "" && (shard.ContainerID != last.ContainerID || shard.Restart != last.Restart)
		switch {
		case again && shard.Start == v1alpha1.StartCold:
			events = append(events, event{corev1.EventTypeWarning, v1alpha1.EventShardStartedEmpty, fmt.Sprintf("shard %s started empty in pod %s", shard.Name, shard.Pod)})
		case again && shard.Start == v1alpha1.StartWarm:
			events = append(events, event{corev1.EventTypeNormal, v1alpha1.EventShardKeptItems,
				fmt.Sprintf("shard %s restarted in pod %s with %d of %d items", shard.Name, shard.Pod, shard.Items, shard.ItemsBefore)})
		}
	}
	before := meta.FindStatusCondition(was.Conditions, v1alpha1.ConditionDegraded)
	after := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionDegraded)
	switch {
	case after.Status == metav1.ConditionTrue && (before == nil || before.Status != after.Status || before.Reason != after.Reason):
		events = append(events, event{corev1.EventTypeWarning, after.Reason, after.Message})
	case after.Status == metav1.ConditionFalse && before != nil && before.Status == metav1.ConditionTrue:
		events = append(events, event{corev1.EventTypeNormal, after.Reason, after.Message})
	}
	return events
}
