package memcached

import (
	"context"
	"fmt"
	"slices"
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

// Messages of a shard that is on its way.
const (
	messageNoPod    = "no pod yet"
	messageStarting = "starting"
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
	s.Bootstrap = p.bootstrap
	if p.refused != nil { // new pods get what they got before
		s.Version, s.Image = m.Status.Version, m.Status.Image
	}
	for _, ordinal := range shardOrdinals(seen, a) {
		shard, revision := shardStatus(seen, &p, a, manifests.ShardName(m.Name, ordinal))
		s.Shards = append(s.Shards, shard)
		if revision != "" {
			if s.Revisions == nil {
				s.Revisions = map[string]string{}
			}
			s.Revisions[shard.Name] = revision
		}
		if shard.Pod != "" {
			s.Nodes = append(s.Nodes, shard.Pod)
		}
		if shard.Ready && ordinal < want {
			s.ReadySize++
		}
		key := manifests.Key{Kind: manifests.KindService, Name: shard.Name}
		service, exists := seen.objects[key]
		if (exists && service.owner == ours || a.made[key]) && ordinal < want {
			s.Servers = append(s.Servers, manifests.Server(m.Namespace, shard.Name))
		}
	}
	s.Size = int32(len(s.Shards)) //nolint:gosec // bounded by the CRD's 1000 and what exists
	s.Ready = fmt.Sprintf("%d/%d", s.ReadySize, want)

	s.Update = updateStatus(seen, &p, s, now)
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

// shardOrdinals returns the ordinals of the shards that exist or were made just now,
// and of those that lost their ReplicaSet and get it back: their next start is to be
// told as one that follows another.
func shardOrdinals(seen *observed, a applied) []int {
	var ordinals []int
	for key, made := range a.made {
		if ordinal, ok := manifests.Ordinal(seen.memcached.Name, key.Name); ok && made && key.Kind == manifests.KindReplicaSet {
			ordinals = append(ordinals, ordinal)
		}
	}
	for _, shard := range seen.memcached.Status.Shards {
		ordinal, ok := manifests.Ordinal(seen.memcached.Name, shard.Name)
		_, exists := seen.objects[manifests.Key{Kind: manifests.KindReplicaSet, Name: shard.Name}]
		if ok && !exists && ordinal < int(*seen.memcached.Spec.Size) {
			ordinals = append(ordinals, ordinal)
		}
	}
	for key, o := range seen.objects {
		if ordinal, ok := manifests.Ordinal(seen.memcached.Name, key.Name); ok && key.Kind == manifests.KindReplicaSet &&
			(o.owner == ours || o.owner == orphaned) {
			ordinals = append(ordinals, ordinal)
		}
	}
	slices.Sort(ordinals)
	return slices.Compact(ordinals)
}

// shardStatus tells of one shard, and the hash of what was asked of its pod when
// its start was told. What it knew of the last start it tells on until a newer start
// is known, and what has to be done about that has been.
func shardStatus(seen *observed, p *plan, a applied, name string) (s v1alpha1.ShardStatus, revision string) {
	s.Name, revision = name, seen.memcached.Status.Revisions[name]
	if last, ok := shardNamed(seen.memcached.Status.Shards, name); ok {
		s.Version, s.Start, s.ContainerID, s.Restart = last.Version, last.Start, last.ContainerID, last.Restart
		s.StartedAt, s.Items, s.ItemsBefore = last.StartedAt, last.Items, last.ItemsBefore
	}
	pods := seen.pods[name]
	if len(pods) == 0 {
		s.Message = messageNoPod
		return s, revision
	}
	pod := pods[0]
	held := p.shardNamed(name)
	if held != nil && held.pod != nil {
		pod = held.pod
		s.Current = held.Pod.Revision == p.target.Revision() && held.Template == p.target.Revision()
	}
	s.Pod, s.Node, s.Ready = pod.Name, pod.Spec.NodeName, isReady(pod) && hasService(seen, a, name)
	if agent, ok := seen.agents[pod.Name]; ok && (held == nil || held.tellsStart()) && !p.unmade(name, a) {
		s.Version, s.Start, s.ContainerID, s.Restart = agent.Version, v1alpha1.StartResult(agent.Start.Result), containerID(pod), agent.Restart
		revision = pod.Annotations[v1alpha1.AnnotationRevision]
		s.StartedAt = &metav1.Time{Time: agent.Start.At.Truncate(time.Second)}
		s.Items, s.ItemsBefore = agent.Start.Items, agent.Start.ItemsBefore
	}
	if trouble := podTrouble(pod); trouble != nil {
		s.Message = bounded(trouble.message)
	} else if !s.Ready && isReady(pod) {
		s.Message = "runs, and has no Service that leads to it"
	} else if !s.Ready && isHeld(pod, seen.now) {
		s.Message = "runs, and is filled before it serves"
	} else if !s.Ready {
		s.Message = messageStarting
	}
	return s, revision
}

// hasService says whether a shard has the Service by which its clients find it.
func hasService(seen *observed, a applied, shard string) bool {
	key := manifests.Key{Kind: manifests.KindService, Name: shard}
	service, ok := seen.objects[key]
	return a.made[key] || ok && (service.owner == ours || service.owner == orphaned) && service.GetDeletionTimestamp() == nil
}

// shardNamed returns the shard of that name.
func shardNamed(shards []v1alpha1.ShardStatus, name string) (v1alpha1.ShardStatus, bool) {
	i := slices.IndexFunc(shards, func(s v1alpha1.ShardStatus) bool { return s.Name == name })
	if i < 0 {
		return v1alpha1.ShardStatus{}, false
	}
	return shards[i], true
}

// writeStatus writes the status if it changed and, once it stands, the events
// that tell of the change, and others of shards that belong to it. It says whether another one
// was faster: then what is to be told has to be looked at again.
func (r *Reconciler) writeStatus(ctx context.Context, m *v1alpha1.Memcached, next v1alpha1.MemcachedStatus, others ...shardEvent) (outrun bool, err error) {
	if equality.Semantic.DeepEqual(m.Status, next) {
		return false, nil
	}
	before := m.DeepCopy()
	m.Status = next
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	switch err := r.Client.Status().Patch(ctx, m, patch, client.FieldOwner(v1alpha1.ManagedByValue)); {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("writing the status: %w", err)
	}
	for _, e := range eventsOf(before, next) {
		r.Recorder.Eventf(m, nil, e.kind, e.reason, "Reconcile", "%s", e.message)
	}
	for _, e := range append(shardEventsOf(before.Status.Shards, next.Shards), others...) {
		pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: m.Namespace, Name: e.pod}
		r.Recorder.Eventf(m, pod, e.kind, e.reason, "Reconcile", "%s", e.message)
	}
	return false, nil
}
