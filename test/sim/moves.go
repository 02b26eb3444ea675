package sim

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

var scalingSteps = []agentwire.ScalingStep{"", agentwire.ScalingCopy, agentwire.ScalingPublished, agentwire.ScalingClose}

// watchMoves notes what the agents have completed, and checks that no new shard serves before it has its keys.
func (w *World) watchMoves() {
	for uid, p := range w.Procs {
		report, pod := p.Moved(), w.PodOf(p)
		for i, step := range scalingSteps {
			if report.ID != "" && (report.Problem != "" && step != agentwire.ScalingClose || i > 0 && step == report.Step) {
				w.watch.moved[moved{report.ID, p.Shard, step}] = true
			}
		}
		m, set := w.ownerOf(p.Shard), simtest.Get[*appsv1.ReplicaSet](w.Server, p.Shard)
		if m == nil || m.Status.Scaling == nil || m.Status.Scaling.Step != v1beta1.ScalingCopying || !p.Serves || report.Problem != "" || pod == nil || pod.UID != uid || set == nil || !metav1.IsControlledBy(pod, set) {
			continue
		}
		if ordinal, ok := resources.Ordinal(m.Name, p.Shard); ok && movesItems(&m.Spec, int(m.Status.Scaling.From), int(m.Status.Scaling.To)) && ordinal >= int(m.Status.Scaling.From) && metav1.IsControlledBy(set, m) && !w.drifted[p.Shard] {
			w.breaks("shard %s serves, and the list of %d shards isn't published", p.Shard, m.Status.Scaling.To)
		}
	}
}

// watchSource looks at the deletion of a shard's object: no other shard needs its items any more.
func (w *World) watchSource(name string) {
	m := w.ownerOf(name)
	if m == nil || m.DeletionTimestamp != nil || m.Status.Scaling != nil && m.Status.Scaling.Problem != "" {
		return
	}
	ordinal, _ := resources.Ordinal(m.Name, name)
	for _, pod := range w.livePods() {
		r, err := agentwire.ParseScaling(pod.Annotations[annotations.Scaling])
		shard := simtest.ShardOf(pod)
		if set := simtest.Get[*appsv1.ReplicaSet](w.Server, shard); set == nil || !metav1.IsControlledBy(set, m) || !metav1.IsControlledBy(pod, set) {
			continue
		}
		if err == nil && r != nil && r.Step != agentwire.ScalingCount && r.Step != agentwire.ScalingPurge && w.ownerOf(shard) == m && ordinal < len(r.From) && !w.watch.moved[moved{r.ID, shard, agentwire.ScalingClose}] {
			w.breaks("shard %s was deleted, and shard %s needs its items", name, shard)
		}
	}
}

// watchList looks at a change of the list of shards: those that get keys have the items.
func (w *World) watchList(before, after *v1beta1.Memcached) {
	was, is := len(before.Status.Servers), len(after.Status.Servers)
	for ordinal := range max(was, is) { // one whose Service was deleted isn't listed, nor one whose ReplicaSet seems to be another Memcached's
		shard := resources.ShardName(before.Name, ordinal)
		service, set := w.operator.service(shard), w.operator.cache.held[simtest.KindReplicaSet][shard]
		if set != nil && !metav1.IsControlledBy(set, before) || service == nil || !metav1.IsControlledBy(service, before) || ordinal < was && !strings.HasPrefix(before.Status.Servers[ordinal], shard+".") ||
			ordinal < is && !strings.HasPrefix(after.Status.Servers[ordinal], shard+".") {
			return
		}
	}
	switch s := before.Status.Scaling; {
	case was == is || s != nil && (s.Problem != "" || is != int(s.To)):
	case s == nil && was > 0 && resources.IsRejected(after):
		w.breaks("the list of Memcached %s changes from %d to %d shards, and its spec is rejected", before.Name, was, is)
	case s == nil:
		if before.Status.Size == int32(was) && before.Status.ObservedGeneration < before.Generation && movesItems(&before.Spec, was, int(*before.Spec.Size)) { //nolint:gosec // a few
			w.breaks("the list of Memcached %s changes from %d to %d shards, and no items moved", before.Name, was, is)
		}
	default:
		for ordinal := range int(s.To) {
			shard := resources.ShardName(before.Name, ordinal)
			isReady := w.watch.moved[moved{s.ID, shard, agentwire.ScalingCopy}] && w.watch.moved[moved{s.ID, shard, agentwire.ScalingPublished}]
			if isTarget := s.From > s.To || ordinal >= int(s.From); isTarget && !isReady {
				w.breaks("the list of Memcached %s changes from %d to %d shards, and shard %s hasn't the items of scaling %+v", before.Name, was, is, shard, *s)
			}
		}
	}
}

// watchRecords looks at a change of a headless Service while shards leave, or when they have left: it removes the pods of these only, and
// adds none of them.
func (w *World) watchRecords(was, is *corev1.Service) {
	m := simtest.Get[*v1beta1.Memcached](w.Server, is.Name)
	if m == nil || m.UID != w.operator.uid || was.Spec.Selector[annotations.Listed] == is.Spec.Selector[annotations.Listed] {
		return
	}
	w.happened["records without shards that leave"]++
	listed := len(m.Status.Servers)
	if s := m.Status.Scaling; s != nil && s.PublishTime != nil {
		listed = int(s.To)
	}
	for _, pod := range w.livePods() {
		shard := simtest.ShardOf(pod)
		ordinal, ok := resources.Ordinal(m.Name, shard)
		if leaves := ordinal >= listed; ok && !w.drifted[shard] && simtest.IsReady(pod) && selects(is, pod) == leaves && selects(was, pod) != leaves {
			w.breaks("of %d shards that clients know, the records of %s change for pod %s: %v", listed, m.Name, pod.Name, is.Spec.Selector)
		}
	}
}

// movesItems reports whether items move when the number of shards changes.
func movesItems(spec *v1beta1.MemcachedSpec, from, to int) bool {
	h := spec.Access.Hashing
	return h != nil && spec.Scaling.Mode != "Cold" && spec.UpdateStrategy.Handover.Mode != "Disabled" && !spec.Paused && min(from, to) > 1 && from != to &&
		(h.Algorithm != "Modulo" || max(from, to)%min(from, to) == 0)
}

// watchRequest looks at a change of a pod's request to get items: the steps of the scaling in the status have an order.
func (w *World) watchRequest(was, is *corev1.Pod) {
	m := w.ownerOf(simtest.ShardOf(was))
	before, _ := agentwire.ParseScaling(was.Annotations[annotations.Scaling])
	after, _ := agentwire.ParseScaling(is.Annotations[annotations.Scaling])
	if before == nil || m == nil || m.Status.Scaling == nil || m.Status.Scaling.ID != before.ID || m.Status.Scaling.Step == v1beta1.ScalingFinishing || !movesItems(&m.Spec, len(before.From), len(before.To)) {
		return
	}
	if after == nil || after.ID != before.ID || slices.Index(scalingSteps, after.Step) < slices.Index(scalingSteps, before.Step) {
		w.breaks("pod %s was requested: %s, and now %q", was.Name, before, is.Annotations[annotations.Scaling])
	}
}
