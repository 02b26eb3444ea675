package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// byUser is what the user has end.
const byUser simtest.By = "the user"

// watch is what the check of the invariants remembers.
type watch struct {
	w *World
	// outs are the shards that serve no more, by whom.
	outs map[string]simtest.By
	// ends are the pods that are being terminated, by whom.
	ends map[types.UID]simtest.By
	// announced are the shards of which a status announced that they will start empty.
	announced map[string]bool
	// replaced are the shards whose last pod finished for an update.
	replaced map[string]bool
	// moved are the steps of moving items that shards have completed, or have a problem with.
	moved map[moved]bool
	// read is how many changes of Memcacheds were checked.
	read int
}

// moved is a step of a scaling that a shard has completed.
type moved struct {
	scaling, shard string
	step           agentwire.ScalingStep
}

// Deletes implements simtest.Watcher: it notes that an object is being deleted, by whom first.
func (w *watch) Deletes(o client.Object, by simtest.By) {
	if _, ok := w.ends[o.GetUID()]; !ok {
		w.ends[o.GetUID()] = by
	}
	p, source := w.w.Procs[o.GetUID()], types.UID(o.GetAnnotations()[annotations.Receive])
	if by == simtest.ByReplicaSet && p != nil && p.Items > 0 && simtest.IsReady(o.(*corev1.Pod)) && o.GetAnnotations()[corev1.PodDeletionCost] == "" && w.ends[source] == simtest.ByOperator && !w.w.drifted[p.Shard] && !w.w.ServedByOther(p) {
		w.w.breaks("pod %s, which has the items of shard %s, is deleted by its ReplicaSet, and the former pod by the operator", p.Pod, p.Shard)
	}
}

// Out implements simtest.Watcher: it notes that a shard serves no more.
func (w *watch) Out(pod *corev1.Pod, by simtest.By) {
	if by != simtest.ByOperator {
		delete(w.replaced, simtest.ShardOf(pod))
	}
	if shard := simtest.ShardOf(pod); shard != "" && simtest.IsReady(pod) {
		if _, ok := w.outs[shard]; !ok {
			w.outs[shard] = by
		}
	}
}

// Stops implements simtest.Watcher: it notes that a pod's container ends for another image.
func (w *watch) Stops(p *simtest.Proc, announced bool) {
	pod := w.w.PodOf(p)
	if !announced {
		w.w.breaks("the container of pod %s, which served, ends without its agent knowing that the pod stays", p.Pod)
	}
	w.Out(pod, simtest.ByOperator)
}

// Lost implements simtest.Watcher: it notes that memcached started in its pod without the items that it had.
func (w *watch) Lost(p *simtest.Proc, items int64) {
	w.w.breaks("shard %s restarted in its pod and lost its %d items", p.Shard, items)
}

// Missed implements simtest.Watcher.
func (w *watch) Missed(p *simtest.Proc) {
	w.w.log("fault", "the kubelet misses a change of pod %s", p.Pod)
}

// Gone implements simtest.Watcher: it notes that a pod was deleted.
func (w *watch) Gone(p *simtest.Proc) {
	world, pod := w.w, w.w.PodOf(p)
	by := w.ends[pod.UID]
	if by == simtest.ByReplicaSet && world.drifted[p.Shard] {
		by = byUser // the set was scaled or got another pod, not the shard
	}
	if !world.ServedByOther(p) {
		cause := by
		if by == simtest.ByReplicaSet {
			cause = simtest.ByOperator
		}
		w.Out(pod, cause)
	}
	m := world.ownerOf(p.Shard)
	set := simtest.Get[*appsv1.ReplicaSet](world.Server, p.Shard)
	isOf := m != nil && set != nil && metav1.IsControlledBy(set, m) && metav1.IsControlledBy(pod, set)
	w.replaced[p.Shard] = by == simtest.ByOperator || by == simtest.ByReplicaSet
	if p.Items == 0 || !p.Serves || !isOf || m.DeletionTimestamp != nil || !isDesired(m, p.Shard) {
		return
	}
	if (by == simtest.ByOperator || by == simtest.ByReplicaSet) && !w.announced[announcement(m, p.Shard)] {
		world.breaks("pod %s went with %d items by %s, and no status had announced that shard %s would start empty", p.Pod, p.Items, by, p.Shard)
	}
}

func announcement(m *v1beta1.Memcached, shard string) string { return string(m.UID) + " " + shard }

// ownerOf returns the Memcached that a shard is of, nil when it no longer exists.
func (w *World) ownerOf(shard string) *v1beta1.Memcached {
	i := strings.LastIndex(shard, "-")
	if i < 0 {
		return nil
	}
	return simtest.Get[*v1beta1.Memcached](w.Server, shard[:i])
}

// isDesired reports whether the spec contains a shard, or the list of a rejected spec.
func isDesired(m *v1beta1.Memcached, shard string) bool {
	ordinal, ok := resources.Ordinal(m.Name, shard)
	return ok && (ordinal < int(*m.Spec.Size) || resources.IsRejected(m) && ordinal < resources.Listed(m))
}

// watchWorld checks the invariants after each step.
func (w *World) watchWorld() {
	past := w.Server.Past[simtest.KindMemcached]
	for ; w.watch.read < len(past); w.watch.read++ {
		m, ok := past[w.watch.read].Is.(*v1beta1.Memcached)
		if ok {
			w.noteStatus(m)
		}
		if ok && m.Status.Update != nil && m.Status.Update.Method == v1beta1.UpdateReplace {
			w.watch.announced[announcement(m, m.Status.Update.Shard)] = true
		}
	}
	w.watchMoves()
	out := map[string][]string{} // by Memcached
	for shard, by := range w.watch.outs {
		m := w.ownerOf(shard)
		switch {
		case m == nil || m.DeletionTimestamp != nil || !isDesired(m, shard) || slices.ContainsFunc(simtest.All[*corev1.Pod](w.Server), serves(shard)):
			delete(w.watch.outs, shard)
		case by == simtest.ByOperator:
			out[m.Name] = append(out[m.Name], shard)
		}
	}
	for _, shards := range out {
		if len(shards) > 1 {
			slices.Sort(shards)
			w.breaks("two shards are unavailable at once by the operator's doing: %s", strings.Join(shards, ", "))
		}
	}
}

// noteStatus counts what a status reports.
func (w *World) noteStatus(m *v1beta1.Memcached) {
	for _, c := range m.Status.Conditions {
		w.happened[c.Type+"="+c.Reason]++
	}
	if s := m.Status.Scaling; s != nil {
		w.happened["scaling "+string(s.Step)]++
	}
	if s := m.Status.Purge; s != nil {
		w.happened["purge "+string(s.Phase)]++
	}
	if u := m.Status.Update; u != nil && u.Gate != "" {
		w.happened["blocked by "+string(u.Gate)]++
	} else if u != nil && u.RollingBack {
		w.happened["rollback"]++
	} else if u != nil {
		w.happened["update by "+string(u.Method)]++
	}
}

// serves returns whether a pod is a ready one of a shard.
func serves(shard string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return simtest.ShardOf(pod) == shard && simtest.IsReady(pod) }
}

// selects reports whether a Service leads to a pod once it is ready.
func selects(service *corev1.Service, pod *corev1.Pod) bool {
	return labels.SelectorFromSet(service.Spec.Selector).Matches(labelsOf(pod))
}

// served reports whether a ready pod that a ReplicaSet keeps stands behind a shard's Service.
func (w *World) served(m *v1beta1.Memcached, shard string) bool {
	service := simtest.Get[*corev1.Service](w.Server, shard)
	return service != nil && service.Labels[v1beta1.LabelInstance] == m.Name && slices.ContainsFunc(simtest.All[*corev1.Pod](w.Server), func(pod *corev1.Pod) bool {
		return simtest.IsReady(pod) && metav1.GetControllerOf(pod) != nil && selects(service, pod)
	})
}

// watchWrite looks at each of the operator's writes whether it may be.
func (w *World) watchWrite(verb string, k simtest.Kind, name string, before, after client.Object) {
	switch {
	case before == nil && after == nil: // what it deletes no longer existed
	case k == simtest.KindMemcached:
		w.watchOwn(verb, name, before.(*v1beta1.Memcached), after)
	case before == nil:
		if owner := metav1.GetControllerOf(after); k != simtest.KindBackup && (owner == nil || owner.UID != w.operator.uid) {
			w.breaks("%s %s was created for another Memcached", k, name)
		}
	case !w.mayWrite(k, before):
		w.breaks("%s %s is foreign, and the operator wrote: %s", k, name, verb)
	}
	if pod, ok := before.(*corev1.Pod); ok && !simtest.IsPreflight(pod) {
		w.watchPod(verb, pod, after)
	}
	if set, ok := before.(*appsv1.ReplicaSet); ok && verb == "apply" && after != nil {
		w.watchTemplate(set, after.(*appsv1.ReplicaSet))
	}
	if service, ok := before.(*corev1.Service); ok && after != nil {
		w.watchRecords(service, after.(*corev1.Service))
	}
	if restore, ok := after.(*v1beta1.MemcachedRestore); ok && before == nil {
		w.watchRefill(restore)
	}
	if verb == "delete" && (k == simtest.KindReplicaSet || k == simtest.KindService) && before != nil {
		w.watchOrder(k, name)
		w.watchSource(name)
		if m := simtest.Get[*v1beta1.Memcached](w.Server, w.operator.reconciling); m != nil && m.DeletionTimestamp == nil && slices.Contains(resources.Keys(m), resources.Key{Kind: resources.Kind(k), Name: name}) {
			w.breaks("%s %s was deleted, and the spec contains it", k, name)
		}
	}
}

// watchRefill looks at a new restore: what an update left empty by design is not filled.
func (w *World) watchRefill(r *v1beta1.MemcachedRestore) {
	for _, ordinal := range r.Spec.Shards {
		if shard := resources.ShardName(r.Spec.MemcachedRef.Name, int(ordinal)); r.Annotations[annotations.Refills] != "" && w.watch.replaced[shard] {
			w.breaks("shard %s was replaced for an update, and MemcachedRestore %s fills it as a lost one", shard, r.Name)
		}
	}
}

// watchOrder looks at the deletion of a shard's object: the highest shard goes first, and its names before its pod.
func (w *World) watchOrder(k simtest.Kind, name string) {
	m := w.ownerOf(name)
	if m == nil || m.DeletionTimestamp != nil || m.UID != w.operator.uid {
		return
	}
	knows := func(k simtest.Kind, name string) bool {
		held, now := w.operator.cache.held[k][name], w.Server.Now[k][name]
		return held != nil && now != nil && held.GetUID() == now.GetUID() && now.GetDeletionTimestamp() == nil && metav1.IsControlledBy(held, m)
	}
	if k == simtest.KindReplicaSet && knows(simtest.KindService, name) {
		w.breaks("the pod of shard %s was deleted before its name", name)
	}
	ordinal, _ := resources.Ordinal(m.Name, name)
	for _, set := range w.Server.Names(simtest.KindReplicaSet) {
		if other, ok := resources.Ordinal(m.Name, set); ok && other > ordinal && knows(simtest.KindReplicaSet, set) {
			w.breaks("shard %s was deleted before shard %s", name, set)
		}
	}
}

// mayWrite reports whether an object is the operator's to write: controlled by the
// Memcached that it reconciles, or without an owner and with its labels.
func (w *World) mayWrite(k simtest.Kind, o client.Object) bool {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return o.GetLabels()[v1beta1.LabelManagedBy] == v1beta1.ManagedByValue && o.GetLabels()[v1beta1.LabelInstance] == w.operator.reconciling
	}
	if owner.UID == w.operator.uid {
		return true
	}
	if k != simtest.KindPod {
		return false
	}
	set := simtest.Get[*appsv1.ReplicaSet](w.Server, owner.Name)
	return set == nil || set.UID != owner.UID || w.mayWrite(simtest.KindReplicaSet, set)
}

// watchOwn looks at a write to a Memcached: its status and its finalizer only, and of the one that was read.
func (w *World) watchOwn(verb, name string, before *v1beta1.Memcached, after client.Object) {
	m, ok := after.(*v1beta1.Memcached)
	if !ok {
		w.watchFinalBackup(before)
		if verb != "patch" || before.DeletionTimestamp == nil {
			w.breaks("Memcached %s was deleted by the operator", name)
		}
		return
	}
	if before.UID != w.operator.uid {
		w.breaks("Memcached %s was recreated, and the operator wrote the state of the previous one", name)
	}
	if !equality.Semantic.DeepEqual(before.Spec, m.Spec) || !reflect.DeepEqual(before.Labels, m.Labels) || !reflect.DeepEqual(before.Annotations, m.Annotations) {
		w.breaks("the operator changed what the user wrote of Memcached %s", name)
	}
	for _, set := range simtest.All[*appsv1.ReplicaSet](w.Server) {
		if before.Status.Bootstrap == nil && m.Status.Bootstrap != nil && w.mayWrite(simtest.KindReplicaSet, set) && set.CreationTimestamp.Before(&m.CreationTimestamp) {
			w.breaks("Memcached %s has shard %s of a deleted one, and is filled as a new one", name, set.Name)
		}
	}
	w.watchList(before, m)
	available := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionAvailable)
	if available == nil || available.Status != metav1.ConditionTrue || verb != "patch status of" {
		return
	}
	for ordinal := range len(m.Status.Servers) {
		shard := resources.ShardName(name, ordinal)
		if seen, ok := w.operator.cache.held[simtest.KindMemcached][name]; !ok || seen.GetGeneration() != m.Generation {
			return // it describes another size
		}
		service := w.operator.service(shard)
		if service == nil || !w.operator.seesPod(func(pod *corev1.Pod) bool { return simtest.IsReady(pod) && selects(service, pod) }) {
			w.breaks("Memcached %s is reported as available, and the operator saw no pod serve shard %s", name, shard)
		}
	}
}

// watchFinalBackup looks at the end of a Memcached: its final backup, if there is one, must be over.
func (w *World) watchFinalBackup(m *v1beta1.Memcached) {
	if m.Spec.DeletionPolicy != v1beta1.DeletionBackup || m.DeletionTimestamp == nil {
		return
	}
	limit := v1beta1.Seconds(m.Spec.Backup.Final.DeadlineSeconds, v1beta1.DefaultFinalBackupDeadlineSeconds)
	for _, b := range simtest.All[*v1beta1.MemcachedBackup](w.Server) {
		if b.Spec.MemcachedRef.Name == m.Name && b.CreationTimestamp.After(m.DeletionTimestamp.Time) && !b.Status.IsFinished() && w.Clock.Now().Before(m.DeletionTimestamp.Add(limit)) {
			w.breaks("Memcached %s was deleted before MemcachedBackup %s was over", m.Name, b.Name)
		}
	}
}

// service returns a shard's Service in the operator's eyes. One that the operator looked up is one that its informer may not know yet.
func (op *operator) service(shard string) *corev1.Service {
	if held, ok := op.cache.held[simtest.KindService][shard].(*corev1.Service); ok && held.Labels[v1beta1.LabelInstance] == op.reconciling {
		return held
	}
	return simtest.Get[*corev1.Service](op.w.Server, shard)
}

// seesPod reports whether in the operator's eyes there is such a pod.
func (op *operator) seesPod(is func(*corev1.Pod) bool) bool {
	for _, pod := range op.cache.held[simtest.KindPod] {
		if is(pod.(*corev1.Pod)) {
			return true
		}
	}
	return false
}

// watchPod looks at a write to a shard's pod: one that ends or restarts a pod that
// serves, or lets it hand over its items, must find every other shard served, in the operator's eyes.
func (w *World) watchPod(verb string, pod *corev1.Pod, after client.Object) {
	is, _ := after.(*corev1.Pod)
	if is != nil {
		w.watchRequest(pod, is)
	}
	restarts := is != nil && (simtest.Container(is).Image != simtest.Container(pod).Image || is.Annotations[annotations.Arguments] != pod.Annotations[annotations.Arguments] ||
		is.Annotations[v1beta1.AnnotationRestart] != pod.Annotations[v1beta1.AnnotationRestart])
	if verb == "delete" {
		w.watch.Deletes(pod, simtest.ByOperator)
		another := serves(simtest.ShardOf(pod))
		if w.operator.seesPod(func(p *corev1.Pod) bool { return p.UID != pod.UID && p.DeletionTimestamp == nil && another(p) }) {
			return
		}
		if simtest.IsReady(pod) {
			w.breaks("pod %s, which is ready, was deleted before another pod of shard %s was", pod.Name, simtest.ShardOf(pod))
		}
	}
	handsOver := is != nil && is.Annotations[annotations.Receive] != pod.Annotations[annotations.Receive]
	if !handsOver && (verb != "delete" && !restarts || !simtest.IsReady(pod)) {
		return
	}
	m := w.ownerOf(simtest.ShardOf(pod))
	if m == nil {
		return
	}
	for ordinal := range resources.Listed(m) {
		if other := resources.ShardName(m.Name, ordinal); other != simtest.ShardOf(pod) && simtest.Get[*appsv1.ReplicaSet](w.Server, other) != nil && !w.operator.seesPod(serves(other)) {
			w.breaks("pod %s, which serves, was changed while no pod was seen to serve shard %s", pod.Name, other)
		}
	}
}

// watchTemplate looks at a write to a ReplicaSet: a second pod that is not to be like
// the first starts empty, which the status must have announced.
func (w *World) watchTemplate(was, is *appsv1.ReplicaSet) {
	if *was.Spec.Replicas != 1 || *is.Spec.Replicas != 2 {
		return
	}
	m := w.ownerOf(is.Name)
	w.watchWorld() // reads the newest status
	if m != nil && m.UID == w.operator.uid && !w.watch.announced[announcement(m, is.Name)] {
		w.breaks("shard %s is being replaced, and no status had announced that it would start empty", is.Name)
	}
}

// watchSteadyState checks, when nothing changes any more, that everything matches the spec or
// is blocked for a reason that has a name.
func (w *World) watchSteadyState() {
	for _, m := range simtest.All[*v1beta1.Memcached](w.Server) {
		if m.DeletionTimestamp != nil {
			w.breaks("Memcached %s should have been deleted, and is not", m.Name)
		}
		w.watchIdle(m)
	}
	for _, k := range simtest.Kinds {
		for _, name := range w.Server.Names(k) {
			if owner := metav1.GetControllerOf(w.Server.Now[k][name]); owner != nil && owner.Kind == string(simtest.KindMemcached) && simtest.Get[*v1beta1.Memcached](w.Server, owner.Name) == nil {
				w.breaks("%s %s is left of Memcached %s, which no longer exists", k, name, owner.Name)
			}
		}
	}
}

// waits are the reasons of Progressing for which a Memcached may rest unfinished.
var waits = map[string]bool{
	v1beta1.ReasonPaused: true, string(v1beta1.GateOutsideMaintenanceWindow): true, string(v1beta1.GateMinPeriodNotElapsed): true,
	string(v1beta1.GateHitRatioNotRecovered): true, v1beta1.ReasonWaitingForClients: true, string(v1beta1.GateUpdateStrategyInvalid): true,
}

// watchIdle checks that one Memcached matches its spec.
func (w *World) watchIdle(m *v1beta1.Memcached) {
	condition := func(name string) metav1.Condition {
		if c := meta.FindStatusCondition(m.Status.Conditions, name); c != nil {
			return *c
		}
		return metav1.Condition{Status: metav1.ConditionUnknown}
	}
	available, progressing, degraded := condition(v1beta1.ConditionAvailable), condition(v1beta1.ConditionProgressing), condition(v1beta1.ConditionDegraded)
	for _, c := range []metav1.Condition{available, progressing, degraded} {
		if c.ObservedGeneration != m.Generation {
			w.breaks("in steady state the status of Memcached %s is of generation %d, not %d", m.Name, c.ObservedGeneration, m.Generation)
			return
		}
	}
	serving, size := 0, resources.Listed(m)
	for ordinal := range size {
		if w.served(m, resources.ShardName(m.Name, ordinal)) {
			serving++
		}
	}
	if all := serving == size && serving > 0; all != (available.Status == metav1.ConditionTrue) && degraded.Reason != v1beta1.ReasonNameConflict {
		w.breaks("in steady state %d of %d shards of %s serve, and Available is %s", serving, size, m.Name, available.Status)
	}
	if progressing.Reason != v1beta1.ReasonUpToDate || degraded.Status == metav1.ConditionTrue {
		if degraded.Status != metav1.ConditionTrue && !waits[progressing.Reason] {
			w.breaks("in steady state Memcached %s is neither up to date nor blocked: Progressing is %s %s: %s", m.Name, progressing.Status, progressing.Reason, progressing.Message)
		}
		return
	}
	image, err := resources.ResolveImage(m.Spec.Pod.Image, m.Spec.Version, w.defaultImage)
	if err != nil {
		w.breaks("Memcached %s is reported as up to date: %v", m.Name, err)
	}
	for ordinal := range int(*m.Spec.Size) {
		w.watchShard(m, resources.ShardName(m.Name, ordinal), resources.NewPodRevision(&m.Spec, image))
	}
	if m.Status.Scaling != nil || m.Status.Purge.IsActive() || len(m.Status.Servers) != int(*m.Spec.Size) {
		w.breaks("Memcached %s is reported as up to date, and its servers are %v, its scaling %+v, its purge %+v", m.Name, m.Status.Servers, m.Status.Scaling, m.Status.Purge)
	}
	if b := m.Status.Binding; m.Spec.Access.Binding.IsEnabled() && !m.Spec.Paused && b.Message == "" {
		secret := simtest.Get[*corev1.Secret](w.Server, b.Name)
		if secret == nil || !metav1.IsControlledBy(secret, m) || strings.Count(string(secret.Data["servers"]), ":11211") != int(*m.Spec.Size) {
			w.breaks("Memcached %s is reported as up to date, and the Secret of its binding is %+v", m.Name, secret)
		}
	}
	for _, set := range simtest.All[*appsv1.ReplicaSet](w.Server) {
		if owner := metav1.GetControllerOf(set); owner != nil && owner.UID == m.UID && !isDesired(m, set.Name) {
			w.breaks("Memcached %s is reported as up to date, and shard %s is one too many", m.Name, set.Name)
		}
	}
}

// watchShard checks that a shard runs as the spec says. The tests of package resources check what a revision means for a pod.
func (w *World) watchShard(m *v1beta1.Memcached, shard string, desired resources.PodRevision) {
	wrong := func(format string, words ...any) {
		w.breaks("Memcached %s is reported as up to date, and shard %s %s", m.Name, shard, fmt.Sprintf(format, words...))
	}
	var pods []*corev1.Pod
	for _, pod := range w.livePods() {
		if simtest.ShardOf(pod) == shard {
			pods = append(pods, pod)
		}
	}
	if len(pods) != 1 {
		wrong("has %d pods", len(pods))
		return
	}
	pod, p := pods[0], w.Procs[pods[0].UID]
	spec := &desired.Spec.Pod
	request, _ := agentwire.ParseScaling(pod.Annotations[annotations.Scaling])
	switch {
	case p == nil || !p.Serves:
		wrong("does not serve")
		return
	case request != nil && request.ID != "": // one without an ID withdraws it
		wrong("has a request to get items of others: %s", pod.Annotations[annotations.Scaling])
	case p.Image != w.admitted(desired.Image.Reference):
		wrong("runs image %s, not %s", p.Image, w.admitted(desired.Image.Reference))
	case p.Arguments != desired.ArgumentsText:
		wrong("runs with %s, not %s", p.Arguments, desired.ArgumentsText)
	case !labels.SelectorFromSet(spec.Scheduling.NodeSelector).Matches(labels.Set(w.NodeOf(p).Labels)):
		wrong("is on %s", p.Node)
	case !labels.SelectorFromSet(spec.Metadata.Labels).Matches(labels.Set(pod.Labels)) || !labels.SelectorFromSet(spec.Metadata.Annotations).Matches(labels.Set(pod.Annotations)):
		wrong("lacks labels or annotations")
	}
	if has, want := p.ResourcesOf(pod), desired.Resources; !equality.Semantic.DeepEqual(has.Limits, want.Limits) || !equality.Semantic.DeepEqual(has.Requests, want.Requests) {
		if p.Resized && hasMore(has, want) { // for a spec that was reverted before the rest of it was applied
			w.gaps++
		} else {
			wrong("has resources %s, not %s", simtest.ResourcesText(has), simtest.ResourcesText(want))
		}
	}
	if set := simtest.Get[*appsv1.ReplicaSet](w.Server, shard); set == nil || set.Spec.Template.Annotations[annotations.Spec] != desired.String() {
		wrong("has the ReplicaSet %+v", set)
	}
}

// hasMore reports whether some resources have a request or a limit that others do not: a
// kubelet does not take one away from a container that runs.
func hasMore(some, others corev1.ResourceRequirements) bool {
	for _, lists := range [][2]corev1.ResourceList{{some.Requests, others.Requests}, {some.Limits, others.Limits}} {
		for name := range lists[0] {
			if _, ok := lists[1][name]; !ok {
				return true
			}
		}
	}
	return false
}

// change of an object by a write.
type change struct{ before, after client.Object }

func (c change) String() string {
	switch {
	case c.before == nil && c.after != nil:
		return "new"
	case c.before != nil && c.after == nil:
		return "deleted"
	case c.before == nil || c.before.GetResourceVersion() == c.after.GetResourceVersion():
		return "as it was"
	}
	if m, ok := c.after.(*v1beta1.Memcached); ok {
		var words []string
		for _, c := range m.Status.Conditions {
			words = append(words, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
		if u := m.Status.Update; u != nil {
			words = append(words, u.Message)
		}
		return strings.Join(words, ", ")
	}
	after := c.after.DeepCopyObject().(client.Object)
	after.SetResourceVersion(c.before.GetResourceVersion())
	after.SetManagedFields(c.before.GetManagedFields())
	patch, err := client.MergeFrom(c.before).Data(after)
	must(err)
	return string(patch)
}
