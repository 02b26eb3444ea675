package sim

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// garbageCollector deletes what belongs to an object that no longer exists.
func garbageCollector(w *World) []action {
	uids := map[string]bool{}
	for _, k := range kinds {
		for _, o := range w.server.now[k] {
			uids[string(o.GetUID())] = true
		}
	}
	var could []action
	for _, k := range kinds {
		for _, name := range w.server.names(k) {
			o := w.server.now[k][name]
			owner := metav1.GetControllerOf(o)
			if owner == nil || uids[string(owner.UID)] || o.GetDeletionTimestamp() != nil {
				continue
			}
			could = append(could, action{fmt.Sprintf("the garbage collector ends %s %s", k, name), func() {
				w.watch.deletes(o, byCollector)
				uid := o.GetUID()
				w.server.delete(o, client.Preconditions{UID: &uid})
			}})
		}
	}
	return could
}

// replicaSets is the ReplicaSet controller.
func replicaSets(w *World) []action {
	var could []action
	for _, set := range all[*appsv1.ReplicaSet](w.server) {
		if set.DeletionTimestamp != nil {
			continue
		}
		could = append(could, w.keep(set)...)
	}
	return could
}

// keep returns what the ReplicaSet controller could do for one ReplicaSet.
func (w *World) keep(set *appsv1.ReplicaSet) []action {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		panic(err)
	}
	var live []*corev1.Pod
	var could []action
	ready := 0
	for _, pod := range all[*corev1.Pod](w.server) {
		if pod.DeletionTimestamp != nil || hasEnded(pod) {
			continue
		}
		switch owner := metav1.GetControllerOf(pod); {
		case owner == nil && selector.Matches(labels.Set(pod.Labels)):
			could = append(could, action{fmt.Sprintf("ReplicaSet %s adopts pod %s", set.Name, pod.Name), func() {
				pod := pod.DeepCopy()
				pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
				w.server.update(pod)
			}})
		case owner == nil || owner.UID != set.UID:
		case !selector.Matches(labels.Set(pod.Labels)):
			could = append(could, action{fmt.Sprintf("ReplicaSet %s releases pod %s", set.Name, pod.Name), func() {
				pod := pod.DeepCopy()
				pod.OwnerReferences = nil
				w.server.update(pod)
			}})
		default:
			live = append(live, pod)
			if isReady(pod) {
				ready++
			}
		}
	}
	if len(could) > 0 {
		return could // it counts when that is done
	}
	want := int(*set.Spec.Replicas)
	switch {
	case len(live) < want:
		could = append(could, action{fmt.Sprintf("ReplicaSet %s creates a pod", set.Name), func() { w.makePod(set) }})
	case len(live) > want:
		slices.SortStableFunc(live, w.givenUpFirst)
		pod := live[0]
		could = append(could, action{fmt.Sprintf("ReplicaSet %s gives up pod %s", set.Name, pod.Name), func() {
			w.watch.deletes(pod, byReplicaSet)
			w.server.delete(pod)
		}})
	}
	status := appsv1.ReplicaSetStatus{Replicas: int32(len(live)), ReadyReplicas: int32(ready), ObservedGeneration: set.Generation} //nolint:gosec // a few
	if had := set.Status; had.Replicas != status.Replicas || had.ReadyReplicas != status.ReadyReplicas || had.ObservedGeneration != status.ObservedGeneration {
		could = append(could, action{fmt.Sprintf("ReplicaSet %s counts %d pods", set.Name, len(live)), func() {
			set := set.DeepCopy()
			set.Status = status
			w.server.updateStatus(set)
		}})
	}
	return could
}

// makePod creates a pod of a ReplicaSet's template.
func (w *World) makePod(set *appsv1.ReplicaSet) {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = set.Name+"-"+w.suffix(), set.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	w.server.create(pod)
	w.pods[set.Name]++
}

// givenUpFirst orders pods by whom the ReplicaSet controller gives up first.
func (w *World) givenUpFirst(a, b *corev1.Pod) int {
	rank := func(p *corev1.Pod) int {
		switch {
		case p.Spec.NodeName == "":
			return 0
		case !isReady(p):
			return 1
		case p.Annotations[corev1.PodDeletionCost] != "":
			return 2
		default:
			return 3
		}
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) // the newer one
}

// node is one of the cluster's.
type node struct {
	name   string
	labels map[string]string
	memory int64
	// down since then; its pods are not ready soon, and evicted after minutes.
	down  bool
	since time.Time
}

// evictsAfter is how long Kubernetes waits for a node before it evicts its pods.
const evictsAfter = 5 * time.Minute

// scheduler puts pods on nodes.
func scheduler(w *World) []action {
	var could []action
	for _, pod := range all[*corev1.Pod](w.server) {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			continue
		}
		fits := w.fits(pod)
		switch {
		case fits != nil:
			could = append(could, action{fmt.Sprintf("pod %s is put on %s", pod.Name, fits.name), func() { w.bind(pod, fits.name) }})
		case !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }):
			could = append(could, action{fmt.Sprintf("no node takes pod %s", pod.Name), func() {
				pod := pod.DeepCopy()
				pod.Status.Phase = corev1.PodPending
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}
				w.server.updateStatus(pod)
			}})
		}
	}
	return could
}

// bind puts a pod on a node.
func (w *World) bind(pod *corev1.Pod, node string) {
	pod = pod.DeepCopy()
	if w.binds != nil {
		w.server.must(pod, func() error { return w.binds(pod, node) })
		return
	}
	pod.Spec.NodeName = node
	w.server.update(pod)
}

// fits returns the emptiest node that takes a pod, nil when none does.
func (w *World) fits(pod *corev1.Pod) *node {
	var best *node
	least := 0
	for _, n := range w.nodes {
		used, pods := requested(pod), 0
		for _, p := range all[*corev1.Pod](w.server) {
			if p.Spec.NodeName == n.name && !hasEnded(p) {
				used += requested(p)
				pods++
			}
		}
		if n.down || used > n.memory || !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(n.labels)) {
			continue
		}
		if best == nil || pods < least {
			best, least = n, pods
		}
	}
	return best
}

// requested returns the memory request of a pod, in bytes.
func requested(pod *corev1.Pod) int64 {
	sum := resource.Quantity{}
	for _, c := range pod.Spec.Containers {
		sum.Add(c.Resources.Requests[corev1.ResourceMemory])
	}
	return sum.Value()
}

// nodeLifecycle looks after nodes that do not answer.
func nodeLifecycle(w *World) []action {
	var could []action
	for _, pod := range all[*corev1.Pod](w.server) {
		n := w.nodeNamed(pod.Spec.NodeName)
		if n == nil || !n.down {
			continue
		}
		if isReady(pod) {
			could = append(could, action{fmt.Sprintf("pod %s is reported as not ready, since %s does not answer", pod.Name, n.name), func() {
				w.watch.out(pod, byFault)
				pod := pod.DeepCopy()
				for i := range pod.Status.Conditions {
					if pod.Status.Conditions[i].Type == corev1.PodReady {
						pod.Status.Conditions[i].Status = corev1.ConditionFalse
					}
				}
				w.server.updateStatus(pod)
			}})
		}
		if pod.DeletionTimestamp == nil && w.clock.Now().Sub(n.since) > evictsAfter {
			could = append(could, action{fmt.Sprintf("pod %s is evicted from %s, which does not answer", pod.Name, n.name), func() {
				w.watch.deletes(pod, byFault)
				w.server.delete(pod)
			}})
		}
	}
	return could
}

func (w *World) nodeNamed(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (w *World) nodeOf(p *proc) *node { return w.nodeNamed(p.node) }

// restores does what the restore controller does with a MemcachedRestore.
func restores(w *World) []action {
	return transfers(w, "restore", func(r *v1alpha1.MemcachedRestore) *v1alpha1.TransferStatus { return &r.Status.TransferStatus },
		func(r *v1alpha1.MemcachedRestore) { r.Status.Restored = perShard })
}

// backups does what the backup controller does with a MemcachedBackup.
func backups(w *World) []action {
	return transfers(w, "backup", func(b *v1alpha1.MemcachedBackup) *v1alpha1.TransferStatus { return &b.Status.TransferStatus },
		func(b *v1alpha1.MemcachedBackup) {
			b.Status.Snapshot = &v1alpha1.SnapshotStatus{Path: b.Name, TakenAt: metav1.NewTime(w.clock.Now()), Items: perShard}
		})
}

func transfers[T client.Object](w *World, name string, statusOf func(T) *v1alpha1.TransferStatus, complete func(T)) []action {
	var could []action
	for _, o := range all[T](w.server) {
		if statusOf(o).IsFinished() || o.GetDeletionTimestamp() != nil {
			continue
		}
		if began, runs := w.transfers[o.GetUID()]; runs && !w.clock.Now().After(began) {
			continue // it takes a moment, in which the operator may see it
		}
		could = append(could, action{"the " + name + " controller goes on with " + o.GetName(), func() {
			o := o.DeepCopyObject().(T)
			if status := statusOf(o); status.Phase == "" {
				status.Phase, w.transfers[o.GetUID()] = v1alpha1.TransferRunning, w.clock.Now()
			} else {
				status.Phase = v1alpha1.TransferComplete
				complete(o)
			}
			w.server.updateStatus(o)
		}})
	}
	return could
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// isPreflight reports whether a pod checks an image.
func isPreflight(pod *corev1.Pod) bool {
	return pod.Labels[v1alpha1.LabelName] == annotations.PreflightName
}

// shardOf returns the shard that a pod is of, empty when it is of none.
func shardOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil && !isPreflight(pod) {
		return owner.Name
	}
	if ordinal := pod.Labels[v1alpha1.LabelShard]; ordinal != "" {
		return pod.Labels[v1alpha1.LabelInstance] + "-" + ordinal
	}
	return ""
}

// The versions of memcached in this world. Nothing depends on which ones exist elsewhere.
const (
	oldest, middle, newest, later = "1.6.18", "1.6.38", "1.6.45", "1.6.46"
	// missing is a version that no registry has.
	missing = "1.6.99"
)

func image(version string) string { return "docker.io/library/memcached:" + version }

var versionTag = regexp.MustCompile(`memcached:(1\.6\.[0-9]+)$`)

// versionIn returns the version of memcached that an image holds, empty when there
// is no such image or no memcached in it.
func versionIn(image string) string {
	if tag := versionTag.FindStringSubmatch(image); tag != nil && tag[1] != missing {
		return tag[1]
	}
	return ""
}

func container(pod *corev1.Pod) *corev1.Container {
	if c := containerOf(&pod.Spec); c != nil {
		return c
	}
	panic("pod " + pod.Name + " has no memcached")
}

func containerOf(spec *corev1.PodSpec) *corev1.Container {
	for i := range spec.Containers {
		if spec.Containers[i].Name == resources.Container {
			return &spec.Containers[i]
		}
	}
	return nil
}
