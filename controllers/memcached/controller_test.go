package memcached

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// everything is a spec in which every field is set, so that a field which is
// written anew at every reconcile is found.
const everything = `
size: 2
version: 1.6.38
image: registry.example.com:5000/cache/memcached
imagePullPolicy: Always
imagePullSecrets: [{name: registry}]
memory: 1.5Gi
connections: 4096
threads: 8
maxItemSize: 2097152
extraArgs: ["-v", "-o", "hash_algorithm=murmur3"]
resources:
  requests: {cpu: "0.5"}
  limits: {memory: "3e9", cpu: 2}
nodeSelector: {disk: none}
tolerations: [{key: cache, operator: Exists, effect: NoSchedule}, {key: spot, value: "yes"}]
affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 1
        preference: {matchExpressions: [{key: arch, operator: In, values: [a, b]}]}
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector: {matchLabels: {app.kubernetes.io/instance: sessions}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: rack
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app.kubernetes.io/instance: sessions}}
priorityClassName: system-cluster-critical
podLabels: {team: shop}
podAnnotations: {example.com/note: hello}
`

func (w *world) exists(name string, o client.Object) bool {
	w.Helper()
	err := admin.Get(w.ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, o)
	w.must(client.IgnoreNotFound(err))
	return err == nil
}

func (w *world) wantCondition(m *v1alpha1.Memcached, kind string, status metav1.ConditionStatus, reason string, words ...string) {
	w.Helper()
	c := meta.FindStatusCondition(m.Status.Conditions, kind)
	if c == nil {
		w.Fatalf("no condition %s in %+v", kind, m.Status.Conditions)
	}
	if c.Status != status || c.Reason != reason || c.ObservedGeneration != m.Generation {
		w.Errorf("%s is %s %s %q of generation %d, want %s %s of %d", kind, c.Status, c.Reason, c.Message, c.ObservedGeneration, status, reason, m.Generation)
	}
	for _, word := range words {
		if !strings.Contains(c.Message, word) {
			w.Errorf("%s says %q, want %q in it", kind, c.Message, word)
		}
	}
}

// runPod makes the pod that the ReplicaSet controller would make for a shard,
// and has it run and be ready.
func (w *world) runPod(shard, suffix, ip string) *corev1.Pod {
	w.Helper()
	pod := w.makePod(shard, suffix)
	w.setPod(pod, ip, true, "containerd://"+suffix)
	return pod
}

// makePod makes the pod that the ReplicaSet controller would make for a shard.
func (w *world) makePod(shard, suffix string) *corev1.Pod {
	w.Helper()
	var set appsv1.ReplicaSet
	w.read(shard, &set)
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: set.Spec.Template.Spec}
	pod.Name, pod.Namespace = shard+"-"+suffix, w.namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	pod.Spec.NodeName = "node1"
	w.must(admin.Create(w.ctx, pod))
	return pod
}

func (w *world) setPod(pod *corev1.Pod, ip string, ready bool, container string) {
	w.Helper()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.ContainersReady, Status: status}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: manifests.Container, ContainerID: container, Ready: ready, Image: "i", ImageID: "i"}},
	}
	w.must(admin.Status().Update(w.ctx, pod))
}

func (w *world) answer(pod *corev1.Pod, start agentapi.Start, version string) {
	w.agents[pod.Status.PodIP] = agentapi.Status{
		Phase: agentapi.PhaseServing, PodUID: string(pod.UID), Version: version, Start: start,
		Restart: pod.Annotations[v1alpha1.AnnotationRestart],
	}
}

// prove has the proofs of a Memcached end as they do with an image of that version.
func (w *world) prove(name, version string) {
	w.Helper()
	var proofs corev1.PodList
	w.must(admin.List(w.ctx, &proofs, client.InNamespace(w.namespace), client.MatchingLabels(manifests.ProofLabels(name))))
	for _, pod := range proofs.Items {
		pod.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
			Name: manifests.Container, Image: "i", ImageID: "i",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: fmt.Sprintf("{\"version\":%q}", version), ContainerID: "containerd://p"}},
		}}}
		w.must(admin.Status().Update(w.ctx, &pod))
	}
}

// endPod is what the kubelet does last when a pod goes.
func (w *world) endPod(pod *corev1.Pod) {
	w.Helper()
	w.must(admin.Delete(w.ctx, pod, client.GracePeriodSeconds(0)))
}

func TestEveryObjectIsMadeAndOwned(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 3")
	m := w.settle("cache")
	for _, key := range manifests.Keys("cache", 3) {
		o := newObject(key.Kind)
		w.read(key.Name, o)
		if !metav1.IsControlledBy(o, m) {
			t.Errorf("%s is not controlled by the Memcached", key)
		}
	}
	w.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionFalse, v1alpha1.ReasonShardsNotReady, "cache-0, cache-1, cache-2")
	w.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonShardsStarting)
	w.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
	if m.Status.Phase != v1alpha1.PhaseProgressing || m.Status.Ready != "0/3" || m.Status.Size != 3 {
		t.Errorf("status %+v", m.Status)
	}
}

func TestASettledMemcachedCostsNoWrite(t *testing.T) {
	for name, spec := range map[string]string{"cache": "size: 3", "sessions": everything} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(name, spec)
			w.settle(name)
			for ordinal := range 2 {
				pod := w.runPod(manifests.ShardName(name, ordinal), "a", "10.0.0."+strconv.Itoa(ordinal+1))
				w.answer(pod, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.38")
			}
			w.settle(name)
			before := w.writes.Load()
			for range 5 {
				w.reconcile(name)
			}
			if n := w.writes.Load() - before; n != 0 {
				t.Errorf("%d writes in five reconciles of a settled Memcached, want none", n)
			}
		})
	}
}

// The pods come up one after another, each in several steps, and a reconcile sees
// every one of them.
func TestCreatingWritesEachObjectOnceAndTheStatusTwice(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 3")
	w.settle("cache")
	if m := w.get("cache"); m.Status.Size != 3 || len(m.Status.Servers) != 3 {
		t.Errorf("after the first write the status tells of %d shards and the servers %v", m.Status.Size, m.Status.Servers)
	}
	var pods []*corev1.Pod
	for ordinal := range 3 {
		pods = append(pods, w.makePod(manifests.ShardName("cache", ordinal), "a"))
		w.reconcile("cache")
	}
	for i, pod := range pods {
		ip := "10.0.0." + strconv.Itoa(i+1)
		w.setPod(pod, ip, false, "containerd://a")
		w.reconcile("cache")
		w.setPod(pod, ip, true, "containerd://a")
		w.answer(pod, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.45")
		w.reconcile("cache")
	}
	m := w.settle("cache")
	if got, want := w.writes.Load(), int64(len(manifests.Keys("cache", 3))+2); got != want {
		t.Errorf("%d writes, want %d", got, want)
	}
	w.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	for _, shard := range m.Status.Shards {
		if !shard.Ready || !shard.Current || shard.Start != v1alpha1.StartCold || m.Status.Revisions[shard.Name] == "" {
			t.Errorf("shard %+v", shard)
		}
	}
	for ordinal, events := 0, w.recorded(); ordinal < 3; ordinal++ {
		w.wantEvent(events, "shard "+manifests.ShardName("cache", ordinal)+" serves")
	}
}

// What waits is told in the end, though nothing else happens.
func TestAShardThatServesAloneIsToldInTheEnd(t *testing.T) {
	w := newWorld(t)
	now := testclock.NewFakePassiveClock(time.Now())
	w.reconciler.Clock = now
	w.create("cache", "size: 2")
	w.settle("cache")
	w.answer(w.runPod("cache-0", "a", "10.0.0.1"), agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.45")
	now.SetTime(time.Now())
	result, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: "cache"}})
	if w.must(err); result.RequeueAfter <= 0 || result.RequeueAfter > gathers {
		t.Fatalf("it is looked at again after %s", result.RequeueAfter)
	}
	if m := w.get("cache"); m.Status.Ready != "0/2" {
		t.Fatalf("it is told at once: %s", m.Status.Ready)
	}
	now.SetTime(now.Now().Add(result.RequeueAfter))
	if m := w.reconcile("cache"); m.Status.Ready != "1/2" || m.Status.Shards[0].Start != v1alpha1.StartCold {
		t.Errorf("ten seconds later the status is %+v", m.Status)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventShardReady)
}

func TestDriftIsMended(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	for name, c := range map[string]struct {
		object client.Object
		name   string
		edit   func(client.Object)
		mended func(client.Object) bool
	}{
		"a port that someone changed": {&corev1.Service{}, "cache-0",
			func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].TargetPort = intstr.FromInt32(1) },
			func(o client.Object) bool {
				return o.(*corev1.Service).Spec.Ports[0].TargetPort == intstr.FromString("memcached")
			}},
		"a selector that someone widened": {&corev1.Service{}, "cache",
			func(o client.Object) { o.(*corev1.Service).Spec.Selector = map[string]string{"a": "b"} },
			func(o client.Object) bool {
				return o.(*corev1.Service).Spec.Selector[v1alpha1.LabelInstance] == "cache"
			}},
		"replicas that someone scaled to nothing": {&appsv1.ReplicaSet{}, "cache-0",
			func(o client.Object) { o.(*appsv1.ReplicaSet).Spec.Replicas = ptr.To[int32](0) },
			func(o client.Object) bool { return *o.(*appsv1.ReplicaSet).Spec.Replicas == 1 }},
		"a template that someone edited": {&appsv1.ReplicaSet{}, "cache-0",
			func(o client.Object) { o.(*appsv1.ReplicaSet).Spec.Template.Spec.Containers[0].Image = "other" },
			func(o client.Object) bool {
				return o.(*appsv1.ReplicaSet).Spec.Template.Spec.Containers[0].Image == "docker.io/library/memcached:1.6.45"
			}},
		"a label that someone took off": {&networkingv1.NetworkPolicy{}, "cache",
			func(o client.Object) { o.SetLabels(nil) },
			func(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue }},
		"a budget that someone loosened": {&policyv1.PodDisruptionBudget{}, "cache",
			func(o client.Object) {
				o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable = ptr.To(intstr.FromInt32(3))
			},
			func(o client.Object) bool { return o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable.IntVal == 1 }},
		"an owner that someone took away": {&corev1.Service{}, "cache-0",
			func(o client.Object) { o.SetOwnerReferences(nil) },
			func(o client.Object) bool { return len(o.GetOwnerReferences()) == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			w.TB = t
			w.read(c.name, c.object)
			uid := c.object.GetUID()
			c.edit(c.object)
			w.must(admin.Update(w.ctx, c.object, client.FieldOwner("someone")))
			w.settle("cache")
			w.read(c.name, c.object)
			if !c.mended(c.object) || c.object.GetUID() != uid {
				t.Errorf("it is not mended in place: %+v", c.object)
			}
		})
	}
}

func TestAStatusComputedFromAnOldOneIsNotWritten(t *testing.T) {
	w := newWorld(t)
	stale := w.create("cache", "size: 1")
	w.settle("cache")
	before := w.get("cache")
	if _, err := w.reconciler.writeStatus(w.ctx, stale, v1alpha1.MemcachedStatus{Ready: "made up"}); err != nil {
		t.Errorf("error %v: the watch brings the next try, not a back-off", err)
	}
	if diff := cmp.Diff(before.Status, w.get("cache").Status); diff != "" {
		t.Errorf("it was written (-before +after):\n%s", diff)
	}
}

func TestWhatOthersAddToAnObjectStays(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	var service corev1.Service
	w.read("cache-0", &service)
	service.Annotations = map[string]string{"service.example.com/balancer": "internal"}
	w.must(admin.Update(w.ctx, &service))
	before := w.writes.Load()
	w.settle("cache")
	w.read("cache-0", &service)
	if service.Annotations["service.example.com/balancer"] != "internal" || w.writes.Load() != before {
		t.Errorf("annotations %v after %d writes, want what was added and no write", service.Annotations, w.writes.Load()-before)
	}
}

func TestWhatIsDeletedComesBack(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 2")
	w.settle("cache")
	for _, key := range manifests.Keys("cache", 2) {
		o := newObject(key.Kind)
		w.read(key.Name, o)
		w.must(admin.Delete(w.ctx, o))
	}
	w.settle("cache")
	for _, key := range manifests.Keys("cache", 2) {
		w.read(key.Name, newObject(key.Kind))
	}
}

func TestScalingInEndsTheHighestOrdinalsFirst(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 5")
	w.settle("cache")
	w.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](2) })
	seen, err := w.reconciler.observe(w.ctx, w.get("cache"))
	w.must(err)
	var order []string
	for _, o := range makePlan(seen, w.reconciler.Options).deletes {
		order = append(order, string(kindOf(o))+" "+o.GetName())
	}
	want := []string{"Service cache-4", "ReplicaSet cache-4", "Service cache-3", "ReplicaSet cache-3", "Service cache-2", "ReplicaSet cache-2"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order of deletes (-want +got):\n%s", diff)
	}
	m := w.settle("cache")
	if w.exists("cache-2", &appsv1.ReplicaSet{}) || !w.exists("cache-1", &appsv1.ReplicaSet{}) || m.Status.Size != 2 {
		t.Errorf("shards 0 and 1 must stay, 2 to 4 must go; status says %d", m.Status.Size)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventScaled)
}

func TestSizeZeroKeepsTheMemcachedAndRunsNothing(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	w.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](0) })
	m := w.settle("cache")
	if w.exists("cache-0", &appsv1.ReplicaSet{}) {
		t.Error("shard 0 still exists")
	}
	w.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionFalse, v1alpha1.ReasonNoShards)
	if m.Status.Phase != v1alpha1.PhaseRunning {
		t.Errorf("phase %s, want Running: all is as it was asked for", m.Status.Phase)
	}
}

func TestTheStatusTellsOfReadyShards(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 2")
	w.settle("cache")
	w.recorded()
	for ordinal, shard := range []string{"cache-0", "cache-1"} {
		pod := w.runPod(shard, "a", "10.0.0."+strconv.Itoa(ordinal+1))
		w.answer(pod, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.45")
	}
	m := w.settle("cache")
	w.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	w.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonSettled)
	if m.Status.Phase != v1alpha1.PhaseRunning || m.Status.Ready != "2/2" || m.Status.Version != "1.6.45" {
		t.Errorf("status %+v", m.Status)
	}
	if diff := cmp.Diff([]string{"cache-0-a", "cache-1-a"}, m.Status.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cache-0." + w.namespace + ".svc:11211", "cache-1." + w.namespace + ".svc:11211"}, m.Status.Servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if shard := m.Status.Shards[1]; shard.Start != v1alpha1.StartCold || shard.Version != "1.6.45" || !shard.Current || shard.Node != "node1" {
		t.Errorf("shard 1: %+v", shard)
	}
	events := w.recorded()
	w.wantEvent(events, v1alpha1.EventShardReady)
	if slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, v1alpha1.EventShardStartedEmpty) }) {
		t.Errorf("a first start is not told as a loss: %q", events)
	}
}

func TestAReplacedPodIsToldToBeEmpty(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	old := w.runPod("cache-0", "old", "10.0.0.1")
	w.answer(old, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.45")
	w.settle("cache")
	w.recorded()

	w.must(admin.Delete(w.ctx, old)) // it serves on until its replacement does
	m := w.settle("cache")
	w.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	replacement := w.runPod("cache-0", "new", "10.0.0.2")
	w.answer(replacement, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.45")
	w.endPod(old)
	m = w.settle("cache")
	if shard := m.Status.Shards[0]; shard.Pod != "cache-0-new" || shard.Start != v1alpha1.StartCold || shard.ContainerID != "containerd://new" {
		t.Errorf("shard %+v", shard)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventShardStartedEmpty)
}

func TestAShardThatLostItsReplicaSetIsToldToBeEmpty(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	old := w.runPod("cache-0", "old", "10.0.0.1")
	w.answer(old, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.45")
	w.settle("cache")
	w.recorded()

	set := newObject(manifests.KindReplicaSet)
	w.read("cache-0", set)
	w.must(admin.Delete(w.ctx, set))
	w.endPod(old)
	if m := w.settle("cache"); m.Status.Size != 1 {
		t.Errorf("size is told as %d while the shard comes back", m.Status.Size)
	}
	replacement := w.runPod("cache-0", "new", "10.0.0.2")
	w.answer(replacement, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.45")
	w.settle("cache")
	w.wantEvent(w.recorded(), v1alpha1.EventShardStartedEmpty)
}

func TestARestartInPlaceIsToldWithItsItems(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	pod := w.runPod("cache-0", "a", "10.0.0.1")
	w.answer(pod, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.38")
	w.settle("cache")
	w.recorded()

	w.setPod(pod, "10.0.0.1", true, "containerd://second")
	w.answer(pod, agentapi.Start{Result: agentapi.StartWarm, Items: 999, ItemsBefore: 1000, At: time.Now()}, "1.6.45")
	m := w.settle("cache")
	if shard := m.Status.Shards[0]; shard.Start != v1alpha1.StartWarm || shard.Items != 999 || shard.ItemsBefore != 1000 || shard.Version != "1.6.45" {
		t.Errorf("shard after the container's restart: %+v", shard)
	}
	w.wantEvent(w.recorded(), "999 of 1000 items")

	pod.Annotations[v1alpha1.AnnotationRestart] = "please"
	w.must(admin.Update(w.ctx, pod)) // the agent has not seen it yet
	if m = w.settle("cache"); m.Status.Shards[0].Restart != "" {
		t.Errorf("an answer from before the restart was taken for one after it: %+v", m.Status.Shards[0])
	}
	w.answer(pod, agentapi.Start{Result: agentapi.StartWarm, Items: 1200, ItemsBefore: 1200, At: time.Now()}, "1.6.45")
	if m = w.settle("cache"); m.Status.Shards[0].Restart != "please" || m.Status.Shards[0].Items != 1200 {
		t.Errorf("shard after the restart by annotation: %+v", m.Status.Shards[0])
	}
	w.wantEvent(w.recorded(), "1200 of 1200 items")
}

func TestAShardThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	pod := w.runPod("cache-0", "a", "10.0.0.1")
	result, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: "cache"}})
	if err != nil || result.RequeueAfter != askAgain {
		t.Fatalf("result %+v, error %v; want to be called again after %s", result, err, askAgain)
	}
	for age, wait := range map[time.Duration]time.Duration{20 * time.Second: 5 * time.Second, time.Hour: askLater} {
		w.reconciler.Clock = testclock.NewFakePassiveClock(pod.CreationTimestamp.Add(age))
		result, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: "cache"}})
		if err != nil || result.RequeueAfter != wait {
			t.Errorf("silent for %s, result %+v, error %v; want to be called again after %s", age, result, err, wait)
		}
	}
	m := w.settle("cache")
	w.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	w.answer(pod, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.45")
	w.agents["10.0.0.1"] = func(s agentapi.Status) agentapi.Status { s.PodUID = "another pod's"; return s }(w.agents["10.0.0.1"])
	if m = w.settle("cache"); m.Status.Shards[0].Start != "" {
		t.Errorf("an answer of another pod at that address was believed: %+v", m.Status.Shards[0])
	}
}

func TestAMendedSpecReplacesOnlyPodsThatCannotRun(t *testing.T) {
	cannotBePulled := corev1.ContainerStatus{Name: manifests.Container, Image: "i", ImageID: "i",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}
	runsUnready := corev1.ContainerStatus{Name: manifests.Container, Image: "i", ImageID: "i",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}
	for reason, c := range map[string]struct {
		mended   bool
		status   corev1.ContainerStatus
		replaced bool
	}{
		"the spec was mended and the pod cannot run":       {true, cannotBePulled, true},
		"the spec is the one that the pod was made from":   {false, cannotBePulled, false},
		"memcached runs, so there may be items in the pod": {true, runsUnready, false},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			w.create("cache", "{size: 2, version: 1.6.99}")
			w.settle("cache")
			w.runPod("cache-0", "a", "10.0.0.1")
			pod := w.runPod("cache-1", "a", "10.0.0.2")
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{c.status}}
			w.must(admin.Status().Update(w.ctx, pod))
			if c.mended {
				w.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Version = "1.6.45" })
			}
			w.settle("cache")
			w.prove("cache", "1.6.45")
			w.settle("cache")
			if !w.exists("cache-0-a", &corev1.Pod{}) {
				t.Error("a pod that serves is gone")
			}
			var after corev1.Pod
			if replaced := !w.exists("cache-1-a", &after) || after.DeletionTimestamp != nil; replaced != c.replaced {
				t.Errorf("the pod is replaced: %t, want %t", replaced, c.replaced)
			}
		})
	}
}

func TestPausedChangesNothingAndGoesOnTelling(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 2")
	w.settle("cache")
	w.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused, m.Spec.Size = true, ptr.To[int32](1) })
	w.must(admin.Delete(w.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cache-0"}}))
	m := w.settle("cache")
	if w.exists("cache-0", &corev1.Service{}) || !w.exists("cache-1", &appsv1.ReplicaSet{}) {
		t.Error("something was changed while paused")
	}
	w.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	if m.Status.Phase != v1alpha1.PhasePaused {
		t.Errorf("phase %s", m.Status.Phase)
	}
	w.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = false })
	w.settle("cache")
	if !w.exists("cache-0", &corev1.Service{}) || w.exists("cache-1", &appsv1.ReplicaSet{}) {
		t.Error("what was asked for meanwhile was not done after the pause")
	}
}

func TestABadVersionOrImageIsRefusedAndNothingTouched(t *testing.T) {
	for name, c := range map[string]struct {
		edit           func(*v1alpha1.MemcachedSpec)
		reason, advice string
	}{
		"a version with known remote crashes": {func(s *v1alpha1.MemcachedSpec) { s.Version = "1.6.2" }, v1alpha1.ReasonVersionUnsupported, "use 1.6.3 or newer"},
		"an image that is no reference":       {func(s *v1alpha1.MemcachedSpec) { s.Image = "memcached:" }, v1alpha1.ReasonImageInvalid, "spec.image"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("cache", "{size: 1, version: 1.6.38}")
			w.settle("cache")
			w.recorded()
			before := w.writes.Load()
			w.change("cache", func(m *v1alpha1.Memcached) { c.edit(&m.Spec) })
			m := w.settle("cache")
			w.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, c.reason, c.advice)
			if n := w.writes.Load() - before; n != 1 {
				t.Errorf("%d writes, want the status alone", n)
			}
			if m.Status.Version != "1.6.38" || m.Status.Phase != v1alpha1.PhaseDegraded {
				t.Errorf("status says version %s, phase %s", m.Status.Version, m.Status.Phase)
			}
			w.wantEvent(w.recorded(), c.reason)
			w.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Version, m.Spec.Image = "1.6.38", "" })
			w.wantCondition(w.settle("cache"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
		})
	}
}

func TestAForeignObjectIsNeitherAdoptedNorDeleted(t *testing.T) {
	w := newWorld(t)
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cache-0"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "web"}}}
	w.must(admin.Create(w.ctx, theirs))
	w.create("cache", "size: 2")
	m := w.settle("cache")
	w.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNameConflict, "Service cache-0", "delete it or choose another name")
	var after corev1.Service
	w.read("cache-0", &after)
	if diff := cmp.Diff(theirs, &after); diff != "" {
		t.Errorf("it was changed:\n%s", diff)
	}
	if len(m.Status.Servers) != 1 {
		t.Errorf("servers %v: the foreign Service is not ours to advertise", m.Status.Servers)
	}
	if !w.exists("cache-1", &corev1.Service{}) {
		t.Error("the other shard must not wait for this one's trouble")
	}
	w.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](0) })
	w.settle("cache")
	if !w.exists("cache-0", &corev1.Service{}) {
		t.Error("scaling in deleted what is somebody else's")
	}
	w.must(admin.Delete(w.ctx, theirs))
	w.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](1) })
	w.wantCondition(w.settle("cache"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
}

func TestAnotherMemcachedsObjectIsForeign(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	w.create("cache-0", "size: 1") // its headless Service would be cache's shard 0
	m := w.settle("cache-0")
	w.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNameConflict, "Service cache-0")
	if w.settle("cache").Status.Servers == nil {
		t.Error("the first one lost its shard's Service")
	}
}

func TestADeletedMemcachedsObjectsAreWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	first := w.settle("cache")
	w.must(admin.Delete(w.ctx, first))
	w.create("cache", "size: 1") // no garbage collector runs here: the old objects stay
	m := w.settle("cache")
	w.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonWaitingForOwner, "ReplicaSet cache-0")
	var set appsv1.ReplicaSet
	w.read("cache-0", &set)
	if !metav1.IsControlledBy(&set, first) {
		t.Error("it was adopted from under the garbage collector")
	}
	for _, key := range manifests.Keys("cache", 1) {
		o := newObject(key.Kind)
		w.read(key.Name, o)
		w.must(admin.Delete(w.ctx, o))
	}
	m = w.settle("cache")
	w.read("cache-0", &set)
	if !metav1.IsControlledBy(&set, m) {
		t.Error("the new one's objects were not made once the old ones were gone")
	}
}

func TestOrphansOfAMemcachedOfThisNameAreTakenOver(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	first := w.settle("cache")
	uids := map[manifests.Key]types.UID{}
	for _, key := range manifests.Keys("cache", 1) { // kubectl delete --cascade=orphan
		o := newObject(key.Kind)
		w.read(key.Name, o)
		o.SetOwnerReferences(nil)
		w.must(admin.Update(w.ctx, o))
		uids[key] = o.GetUID()
	}
	w.must(admin.Delete(w.ctx, first))
	w.create("cache", "size: 1")
	m := w.settle("cache")
	for key, uid := range uids {
		o := newObject(key.Kind)
		w.read(key.Name, o)
		if o.GetUID() != uid || !metav1.IsControlledBy(o, m) {
			t.Errorf("%s was not taken over as it is", key)
		}
	}
}

// Between the look and the write somebody puts another one there.
func TestAnObjectThatAnotherTookTheNameOfIsNotWritten(t *testing.T) {
	for name, change := range map[string]func(client.Object){
		"ReplicaSet": func(o client.Object) { o.(*appsv1.ReplicaSet).Spec.Replicas = ptr.To[int32](0) },
		"Service":    func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].TargetPort = intstr.FromInt32(1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("cache", "size: 1")
			w.settle("cache")
			object := map[string]client.Object{"ReplicaSet": &appsv1.ReplicaSet{}, "Service": &corev1.Service{}}[name]
			w.read("cache-0", object)
			change(object)
			w.must(admin.Update(w.ctx, object))
			seen, err := w.reconciler.observe(w.ctx, w.get("cache"))
			w.must(err)
			p := makePlan(seen, w.reconciler.Options)
			w.must(admin.Delete(w.ctx, object))
			other := object.DeepCopyObject().(client.Object)
			other.SetUID("")
			other.SetResourceVersion("")
			other.SetOwnerReferences(nil)
			w.must(admin.Create(w.ctx, other))
			a := w.reconciler.apply(w.ctx, p)
			if err := a.retry(); err != nil || !a.outrun || len(a.refusals) > 0 {
				t.Errorf("error %v, refusals %v, outrun %t: want another look", err, a.refusals, a.outrun)
			}
			if w.read("cache-0", object); object.GetUID() != other.GetUID() || object.GetResourceVersion() != other.GetResourceVersion() {
				t.Error("it was written")
			}
		})
	}
}

func TestWhatTheAPIServerRefusesIsTold(t *testing.T) {
	for what, spec := range map[string]string{
		"not a label!": `{size: 1, nodeSelector: {"not a label!": x}}`,
		"duplicate entries for key": `{size: 1, topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 1},
			{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 2}]}`,
	} {
		w := newWorld(t)
		w.create("cache", spec)
		m := w.reconcile("cache")
		w.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonApplyRefused, "ReplicaSet cache-0", what)
		if !w.exists("cache-0", &corev1.Service{}) {
			t.Error("what it does not refuse must be made")
		}
	}
}

func TestAQuotaInTheWayIsToldAndTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.must(admin.Create(w.ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/replicasets.apps": resource.MustParse("0")}}}))
	w.setQuota("none", "0")
	w.create("cache", "size: 1")
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: "cache"}}
	if _, err := w.reconciler.Reconcile(w.ctx, request); err == nil {
		t.Fatal("no error, so nobody tries again")
	}
	m := w.get("cache")
	w.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonApplyRefused, "exceeded quota")
	w.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonRetrying, "trying again")
	w.setQuota("none", "9")
	w.wantCondition(w.settle("cache"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
}

// setQuota does what the quota controller does, which does not run here.
func (w *world) setQuota(name, hard string) {
	w.Helper()
	var quota corev1.ResourceQuota
	w.read(name, &quota)
	quota.Spec.Hard = corev1.ResourceList{"count/replicasets.apps": resource.MustParse(hard)}
	w.must(admin.Update(w.ctx, &quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"count/replicasets.apps": resource.MustParse("0")}}
	w.must(admin.Status().Update(w.ctx, &quota))
}

func TestANamespaceThatGoesIsLeftInPeace(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	w.recorded()
	w.must(admin.Delete(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	w.must(admin.Delete(w.ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cache-0"}}))
	before := w.get("cache")
	m := w.reconcile("cache") // no error, so no storm of retries
	if diff := cmp.Diff(before.Status, m.Status); diff != "" {
		t.Errorf("the status was written:\n%s", diff)
	}
	if events := w.recorded(); len(events) > 0 {
		t.Errorf("events %q: such a namespace takes none", events)
	}
}

func TestTroubleOfPodsIsTold(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: manifests.Container, Image: "i:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	crashed := waiting("CrashLoopBackOff", "back-off 10s")
	crashed.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no memcached in this image"}
	for name, c := range map[string]struct {
		status        corev1.PodStatus
		reason, words string
	}{
		"an image that cannot be pulled": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImagePullBackOff", "not found")}}, v1alpha1.ReasonImagePull, "not found"},
		"an agent that cannot be pulled": {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{waiting("ErrImagePull", "denied")}}, v1alpha1.ReasonImagePull, "denied"},
		"a crash":                        {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{crashed}}, v1alpha1.ReasonShardCrashes, "no memcached in this image"},
		"no node that takes it": {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}}, v1alpha1.ReasonUnschedulable, "0/3 nodes"},
		"a node that does not answer": {corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}}, v1alpha1.ReasonNodeLost, "node1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("cache", "size: 1")
			w.settle("cache")
			pod := w.runPod("cache-0", "a", "10.0.0.1")
			pod.Status = c.status
			w.must(admin.Status().Update(w.ctx, pod))
			m := w.settle("cache")
			w.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, c.reason, "cache-0", c.words)
			if !strings.Contains(m.Status.Shards[0].Message, c.words) {
				t.Errorf("the shard says %q", m.Status.Shards[0].Message)
			}
		})
	}
}

func TestAnImageOfAnotherVersionThanItSaysIsTold(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "{size: 1, version: 1.6.38}")
	w.settle("cache")
	pod := w.runPod("cache-0", "a", "10.0.0.1")
	w.answer(pod, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.18")
	w.wantCondition(w.settle("cache"), v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonVersionMismatch, "holds memcached 1.6.18, not 1.6.38")
}

// TestTheManagerWatchesWithTheOperatorsRights runs the controller as main does,
// with caches and watches, and the rights of config/rbac alone.
func TestTheManagerWatchesWithTheOperatorsRights(t *testing.T) {
	w := newWorld(t)
	eventually := w.manage()
	w.create("cache", "size: 2")
	eventually("both shards are made", func() bool { return w.get("cache").Status.Size == 2 })

	var set appsv1.ReplicaSet
	w.read("cache-1", &set)
	uid := set.UID
	w.must(admin.Delete(w.ctx, &set))
	eventually("a deleted ReplicaSet is back", func() bool { return w.exists("cache-1", &set) && set.UID != uid })

	set.Labels = nil
	w.must(admin.Update(w.ctx, &set))
	eventually("an object that left the cache with its label is mended", func() bool {
		w.read("cache-1", &set)
		return set.Labels[v1alpha1.LabelManagedBy] != ""
	})
	w.runPod("cache-0", "a", "10.0.0.1")
	w.runPod("cache-1", "a", "10.0.0.2")
	eventually("the pods' readiness is told", func() bool { return w.get("cache").Status.Ready == "2/2" })
	eventually("each shard has its event", func() bool {
		var list corev1.EventList
		w.must(admin.List(w.ctx, &list, client.InNamespace(w.namespace)))
		told := map[string]bool{}
		for _, e := range list.Items {
			if e.Reason == v1alpha1.EventShardReady {
				told[e.Message] = true
			}
		}
		return len(told) == 2
	})
	w.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](0) })
	eventually("the shards are ended", func() bool { return w.get("cache").Status.Size == 0 })
	eventually("an event is recorded", func() bool {
		var list corev1.EventList
		w.must(admin.List(w.ctx, &list, client.InNamespace(w.namespace)))
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == v1alpha1.EventScaled })
	})
}

// manage runs the controller in a manager until the test ends, and returns what waits
// for what it does.
func (w *world) manage() (eventually func(what string, ok func() bool)) {
	w.Helper()
	mgr, err := ctrl.NewManager(asSelf, ctrl.Options{Scheme: scheme, Cache: CacheOptions(w.namespace), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}})
	w.must(err)
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Agents: podAgents{w}, Recorder: mgr.GetEventRecorder("memcached-operator"), Clock: w.reconciler.Clock, Options: w.reconciler.Options}
	w.must(r.SetupWithManager(mgr))
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	return func(what string, ok func() bool) {
		w.Helper()
		if err := wait.PollUntilContextTimeout(w.ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return ok(), nil }); err != nil {
			w.Fatalf("%s: %v", what, err)
		}
	}
}

// podAgents answers for every pod that there is, as one that started empty.
type podAgents struct{ *world }

func (a podAgents) Status(ctx context.Context, podIP string) (agentapi.Status, error) {
	var pods corev1.PodList
	if err := admin.List(ctx, &pods, client.InNamespace(a.namespace)); err != nil {
		return agentapi.Status{}, err
	}
	for _, pod := range pods.Items {
		if pod.Status.PodIP == podIP {
			return agentapi.Status{Phase: agentapi.PhaseServing, PodUID: string(pod.UID), Version: "1.6.45",
				Start: agentapi.Start{Result: agentapi.StartCold, At: pod.CreationTimestamp.Time}}, nil
		}
	}
	return agentapi.Status{}, fmt.Errorf("no answer from %s", podIP)
}

// What other controllers do is seen in the cache, with the operator's rights alone.
func TestTheManagerSeesHowRestoresAndBackupsEnd(t *testing.T) {
	w := newWorld(t)
	eventually := w.manage()
	w.create("cache", "{size: 1, rewarm: {}, bootstrap: {backup: {name: nightly}}, deletionPolicy: Backup, backup: {store: {persistentVolumeClaim: {claimName: store}}}}")
	eventually("the shard is made", func() bool { return w.exists("cache-0", &appsv1.ReplicaSet{}) })
	pod := w.runPod("cache-0", "a", "10.0.0.1")
	pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	w.must(admin.Status().Update(w.ctx, pod))

	restore := &v1alpha1.MemcachedRestore{}
	eventually("its restore is made", func() bool { return w.exists("cache-bootstrap", restore) })
	restore.Status.Phase = v1alpha1.RunComplete
	w.must(admin.Status().Update(w.ctx, restore))
	eventually("its end is told", func() bool { return w.get("cache").Status.Bootstrap.Phase == v1alpha1.RunComplete })

	backup := &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "nightly"}, Spec: v1alpha1.MemcachedBackupSpec{
		Memcached: v1alpha1.MemcachedReference{Name: "cache"}, Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}}}
	w.must(admin.Create(w.ctx, backup))
	backup.Status.Phase = v1alpha1.RunComplete
	backup.Status.Snapshot = &v1alpha1.SnapshotStatus{Path: "p", TakenAt: metav1.NewTime(pod.CreationTimestamp.Add(-time.Minute))}
	w.must(admin.Status().Update(w.ctx, backup))
	eventually("the first start is told", func() bool { return w.get("cache").Status.Shards[0].Start != "" })
	w.endPod(pod)
	next := w.runPod("cache-0", "b", "10.0.0.2")
	ours := func() []v1alpha1.MemcachedRestore {
		var restores v1alpha1.MemcachedRestoreList
		w.must(admin.List(w.ctx, &restores, client.InNamespace(w.namespace)))
		return slices.DeleteFunc(restores.Items, func(r v1alpha1.MemcachedRestore) bool { return r.Name == "cache-bootstrap" })
	}
	eventually("the lost shard is filled", func() bool { return len(ours()) == 1 })
	rewarm := ours()[0]
	rewarm.Status.Phase = v1alpha1.RunComplete
	w.must(admin.Status().Update(w.ctx, &rewarm))
	w.endPod(next)
	eventually("what filled a pod that is gone is tidied up", func() bool { return len(ours()) == 0 })

	w.runPod("cache-0", "c", "10.0.0.3")
	eventually("it serves", func() bool { return w.get("cache").Status.Ready == "1/1" })
	m := w.get("cache")
	w.must(admin.Delete(w.ctx, m))
	eventually("its last backup is made", func() bool { return w.exists(finalName(m), backup) })
	backup.Status.Phase, backup.Status.Snapshot = v1alpha1.RunComplete, &v1alpha1.SnapshotStatus{Path: "p", TakenAt: metav1.Now(), Items: 7}
	w.must(admin.Status().Update(w.ctx, backup))
	eventually("it goes", func() bool { return !w.exists("cache", m) })
	eventually("that is told", func() bool {
		var list corev1.EventList
		w.must(admin.List(w.ctx, &list, client.InNamespace(w.namespace)))
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == v1alpha1.EventFinalBackup })
	})
}
