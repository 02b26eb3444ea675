package simtest

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// collectGarbage deletes what belongs to an object that no longer exists.
func (cl *Cluster) collectGarbage() []Action {
	uids := map[string]bool{}
	for _, k := range Kinds {
		for _, o := range cl.Server.Now[k] {
			uids[string(o.GetUID())] = true
		}
	}
	var could []Action
	for _, k := range Kinds {
		for _, name := range cl.Server.Names(k) {
			o := cl.Server.Now[k][name]
			owner := metav1.GetControllerOf(o)
			if owner == nil || uids[string(owner.UID)] || o.GetDeletionTimestamp() != nil {
				continue
			}
			could = append(could, Action{fmt.Sprintf("the garbage collector ends %s %s", k, name), func() {
				cl.Watcher.Deletes(o, ByCollector)
				uid := o.GetUID()
				cl.delete(o, client.Preconditions{UID: &uid})
			}})
		}
	}
	return could
}

// replicaSets is what the ReplicaSet controller knows.
type replicaSets struct {
	// seen are the objects that its informers hold, and the changes that they have received.
	seen *Server
	// late is until when a watch brings no changes.
	late map[Kind]time.Time
	// own is how many changes of pods there were when it had created or deleted those of a ReplicaSet: it awaits these changes.
	own map[types.UID]int
}

// receive has the ReplicaSet controller receive what its watch of a kind brings.
func (cl *Cluster) receive(k Kind) {
	r, past := &cl.replicaSets, cl.Server.Past[k]
	had, now := len(r.seen.Past[k]), cl.Clock.Now()
	if had == len(past) || now.Before(r.late[k]) {
		return
	}
	if _, wasLate := r.late[k]; wasLate {
		delete(r.late, k)
	} else if lag := cl.Lags(k); lag > 0 {
		r.late[k] = now.Add(lag)
		return
	}
	for _, change := range past[had:] {
		if r.seen.Now[k][change.Name] = change.Is; change.Is == nil {
			delete(r.seen.Now[k], change.Name)
		}
	}
	r.seen.Past[k] = past
}

// syncReplicaSets is the ReplicaSet controller.
func (cl *Cluster) syncReplicaSets() []Action {
	cl.receive(KindReplicaSet)
	cl.receive(KindPod)
	var could []Action
	for _, set := range All[*appsv1.ReplicaSet](cl.replicaSets.seen) {
		if set.DeletionTimestamp != nil {
			continue
		}
		could = append(could, cl.keep(set)...)
	}
	return could
}

// keep returns what the ReplicaSet controller could do for one ReplicaSet. It decides by what it has seen, and writes to what there is.
func (cl *Cluster) keep(set *appsv1.ReplicaSet) []Action {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		panic(err)
	}
	now := Get[*appsv1.ReplicaSet](cl.Server, set.Name)
	exists := now != nil && now.UID == set.UID
	var live []*corev1.Pod
	var could []Action
	ready := 0
	for _, pod := range All[*corev1.Pod](cl.replicaSets.seen) {
		if pod.DeletionTimestamp != nil || isFinished(pod) {
			continue
		}
		owner, is, matches := metav1.GetControllerOf(pod), cl.same(pod), selector.Matches(labels.Set(pod.Labels))
		isOwned := is != nil && metav1.IsControlledBy(is, set) // it knows whom it has adopted or released
		switch {
		case owner != nil && owner.UID != set.UID:
		case matches && (owner != nil || isOwned):
			live = append(live, pod)
			if IsReady(pod) {
				ready++
			}
		case matches && exists && now.DeletionTimestamp == nil && is != nil && metav1.GetControllerOf(is) == nil:
			could = append(could, Action{fmt.Sprintf("ReplicaSet %s adopts pod %s", set.Name, pod.Name), func() {
				pod := is.DeepCopy()
				pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
				cl.update(pod)
			}})
		case !matches && isOwned:
			could = append(could, Action{fmt.Sprintf("ReplicaSet %s releases pod %s", set.Name, pod.Name), func() {
				pod := is.DeepCopy()
				pod.OwnerReferences = nil
				cl.update(pod)
			}})
		}
	}
	if len(could) > 0 {
		return could // it counts when that is done
	}
	switch excess := len(live) - int(*set.Spec.Replicas); {
	case len(cl.replicaSets.seen.Past[KindPod]) < cl.replicaSets.own[set.UID]: // the ControllerExpectations of Kubernetes
	case excess < 0:
		could = append(could, Action{fmt.Sprintf("ReplicaSet %s creates %d pods", set.Name, -excess), func() {
			for range -excess {
				cl.makePod(set)
			}
			cl.replicaSets.own[set.UID] = len(cl.Server.Past[KindPod])
		}})
	case excess > 0:
		slices.SortStableFunc(live, func(a, b *corev1.Pod) int { return slices.Compare(cl.givenUpFirst(a), cl.givenUpFirst(b)) })
		for _, pod := range live[:excess] {
			could = append(could, Action{fmt.Sprintf("ReplicaSet %s gives up pod %s", set.Name, pod.Name), func() {
				if is := cl.same(pod); is != nil {
					cl.Watcher.Deletes(is, ByReplicaSet)
					cl.delete(is)
					cl.replicaSets.own[set.UID] = len(cl.Server.Past[KindPod])
				}
			}})
		}
	}
	status := appsv1.ReplicaSetStatus{Replicas: int32(len(live)), ReadyReplicas: int32(ready), ObservedGeneration: set.Generation} //nolint:gosec // a few
	if exists && (now.Status.Replicas != status.Replicas || now.Status.ReadyReplicas != status.ReadyReplicas || now.Status.ObservedGeneration != status.ObservedGeneration) {
		could = append(could, Action{fmt.Sprintf("ReplicaSet %s counts %d pods", set.Name, len(live)), func() {
			set := now.DeepCopy()
			set.Status = status
			cl.updateStatus(set)
		}})
	}
	return could
}

// same returns a pod as it is now, nil when it no longer exists.
func (cl *Cluster) same(pod *corev1.Pod) *corev1.Pod {
	if is := Get[*corev1.Pod](cl.Server, pod.Name); is != nil && is.UID == pod.UID {
		return is
	}
	return nil
}

// makePod creates a pod of a ReplicaSet's template.
func (cl *Cluster) makePod(set *appsv1.ReplicaSet) {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = set.Name+"-"+cl.Suffix(), set.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	cl.create(pod)
	cl.Pods[set.Name]++
}

// givenUpFirst returns what orders pods by whom the ReplicaSet controller gives up first: see ActivePodsWithRanks of Kubernetes.
func (cl *Cluster) givenUpFirst(p *corev1.Pod) []int {
	one := map[bool]int{true: 1}
	cost, _ := strconv.Atoi(p.Annotations[corev1.PodDeletionCost])
	related, ready, restarts := 0, 0, 0
	for _, pod := range All[*corev1.Pod](cl.replicaSets.seen) {
		related += one[pod.Spec.NodeName == p.Spec.NodeName && pod.Labels[v1beta1.LabelInstance] == p.Labels[v1beta1.LabelInstance] && pod.DeletionTimestamp == nil && !isFinished(pod)]
	}
	age := func(since metav1.Time) int { return bits.Len64(uint64(max(cl.Clock.Now().Sub(since.Time), 0))) } //nolint:gosec // not negative
	for _, c := range p.Status.Conditions {
		ready += one[c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue] * age(c.LastTransitionTime)
	}
	for _, c := range p.Status.ContainerStatuses {
		restarts = max(restarts, int(c.RestartCount))
	}
	return []int{one[p.Spec.NodeName != ""], one[p.Status.Phase == corev1.PodRunning], one[IsReady(p)], cost, -related, ready, -restarts, age(p.CreationTimestamp)}
}

// Node is one of the cluster's.
type Node struct {
	Name   string
	Labels map[string]string
	memory int64
	// Down since then; its pods are not ready soon, and evicted after minutes.
	Down  bool
	Since time.Time
}

// evictsAfter is how long Kubernetes waits for a node before it evicts its pods.
const evictsAfter = 5 * time.Minute

// schedule puts pods on nodes.
func (cl *Cluster) schedule() []Action {
	var could []Action
	for _, pod := range All[*corev1.Pod](cl.Server) {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			continue
		}
		fits := cl.fits(pod)
		switch {
		case fits != nil:
			could = append(could, Action{fmt.Sprintf("pod %s is put on %s", pod.Name, fits.Name), func() { cl.bind(pod, fits.Name) }})
		case !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }):
			could = append(could, Action{fmt.Sprintf("no node takes pod %s", pod.Name), func() {
				pod := pod.DeepCopy()
				pod.Status.Phase = corev1.PodPending
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}
				cl.updateStatus(pod)
			}})
		}
	}
	return could
}

// bind puts a pod on a node.
func (cl *Cluster) bind(pod *corev1.Pod, node string) {
	pod = pod.DeepCopy()
	if cl.Binds != nil {
		must(pod, cl.Binds(pod, node))
		cl.Server.note(KindPod, pod.Name)
		return
	}
	pod.Spec.NodeName = node
	cl.update(pod)
}

// fits returns the emptiest node that takes a pod, nil when none does.
func (cl *Cluster) fits(pod *corev1.Pod) *Node {
	var best *Node
	least := 0
	for _, n := range cl.Nodes {
		used, pods := requested(pod), 0
		for _, p := range All[*corev1.Pod](cl.Server) {
			if p.Spec.NodeName == n.Name && !isFinished(p) {
				used += requested(p)
				pods++
			}
		}
		if n.Down || used > n.memory || !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
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

// watchNodes looks after nodes that do not answer.
func (cl *Cluster) watchNodes() []Action {
	var could []Action
	for _, pod := range All[*corev1.Pod](cl.Server) {
		n := cl.nodeNamed(pod.Spec.NodeName)
		if n == nil || !n.Down {
			continue
		}
		if IsReady(pod) {
			could = append(could, Action{fmt.Sprintf("pod %s is reported as not ready, since %s does not answer", pod.Name, n.Name), func() {
				cl.Watcher.Out(pod, ByFault)
				pod := pod.DeepCopy()
				for i := range pod.Status.Conditions {
					if pod.Status.Conditions[i].Type == corev1.PodReady {
						pod.Status.Conditions[i].Status = corev1.ConditionFalse
					}
				}
				cl.updateStatus(pod)
			}})
		}
		if pod.DeletionTimestamp == nil && cl.Clock.Now().Sub(n.Since) > evictsAfter {
			could = append(could, Action{fmt.Sprintf("pod %s is evicted from %s, which does not answer", pod.Name, n.Name), func() {
				cl.Watcher.Deletes(pod, ByFault)
				cl.delete(pod)
			}})
		}
	}
	return could
}

func (cl *Cluster) nodeNamed(name string) *Node {
	for _, n := range cl.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// NodeOf returns the node of a process, nil when it no longer exists.
func (cl *Cluster) NodeOf(p *Proc) *Node { return cl.nodeNamed(p.Node) }

// runRestores does what the restore controller does with a MemcachedRestore.
func (cl *Cluster) runRestores() []Action {
	return transfers(cl, "restore", func(r *v1beta1.MemcachedRestore) *v1beta1.TransferStatus { return &r.Status.TransferStatus },
		func(r *v1beta1.MemcachedRestore) { r.Status.Restored = ItemsPerShard })
}

// runBackups does what the backup controller does with a MemcachedBackup.
func (cl *Cluster) runBackups() []Action {
	return transfers(cl, "backup", func(b *v1beta1.MemcachedBackup) *v1beta1.TransferStatus { return &b.Status.TransferStatus },
		func(b *v1beta1.MemcachedBackup) {
			b.Status.Snapshot = &v1beta1.SnapshotStatus{Path: b.Name, SnapshotTime: metav1.NewTime(cl.Clock.Now()), Items: ItemsPerShard}
		})
}

func transfers[T client.Object](cl *Cluster, name string, statusOf func(T) *v1beta1.TransferStatus, complete func(T)) []Action {
	var could []Action
	for _, o := range All[T](cl.Server) {
		if statusOf(o).IsFinished() || o.GetDeletionTimestamp() != nil {
			continue
		}
		if began, runs := cl.began[o.GetUID()]; runs && !cl.Clock.Now().After(began) {
			continue // it takes a moment, in which the operator may see it
		}
		could = append(could, Action{"the " + name + " controller goes on with " + o.GetName(), func() {
			o := o.DeepCopyObject().(T)
			if status := statusOf(o); status.Phase == "" {
				status.Phase, cl.began[o.GetUID()] = v1beta1.TransferRunning, cl.Clock.Now()
			} else {
				status.Phase = v1beta1.TransferComplete
				complete(o)
			}
			cl.updateStatus(o)
		}})
	}
	return could
}

// IsReady returns whether the kubelet reports a pod as ready.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// IsPreflight reports whether a pod checks an image.
func IsPreflight(pod *corev1.Pod) bool {
	return pod.Labels[v1beta1.LabelName] == annotations.PreflightName
}

// ShardOf returns the shard that a pod is of, empty when it is of none.
func ShardOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil && !IsPreflight(pod) {
		return owner.Name
	}
	if ordinal := pod.Labels[v1beta1.LabelShard]; ordinal != "" {
		return pod.Labels[v1beta1.LabelInstance] + "-" + ordinal
	}
	return ""
}

// The versions of memcached in this world. All but the oldest may have TLS and authentication.
const (
	Oldest = "1.6.18"
	Middle = "1.6.44"
	Newest = "1.6.45"
	Later  = "1.6.46"
	// Missing is a version that no registry has.
	Missing = "1.6.99"
)

// Image returns the reference of the image of a version.
func Image(version string) string { return "docker.io/library/memcached:" + version }

// Upstream begins the references of images that no node can pull.
const Upstream = "upstream.example/"

var versionTag = regexp.MustCompile(`memcached:(1\.6\.[0-9]+)$`)

// VersionIn returns the version of memcached that an image holds, empty when there
// is no such image or no memcached in it.
func VersionIn(image string) string {
	if tag := versionTag.FindStringSubmatch(image); tag != nil && tag[1] != Missing && !strings.HasPrefix(image, Upstream) {
		return tag[1]
	}
	return ""
}

// Container returns the container of memcached of a pod.
func Container(pod *corev1.Pod) *corev1.Container {
	if c := ContainerOf(&pod.Spec); c != nil {
		return c
	}
	panic("pod " + pod.Name + " has no memcached")
}

// ContainerOf returns the container of memcached of a spec, nil when it has none.
func ContainerOf(spec *corev1.PodSpec) *corev1.Container {
	for i := range spec.Containers {
		if spec.Containers[i].Name == resources.Container {
			return &spec.Containers[i]
		}
	}
	return nil
}
