package memcached

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"reflect"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// everyField is a spec in which every field is set.
//
//go:embed testdata/every_field.yaml
var everyField string

// alternatives are the fields that everyField doesn't set, because each excludes another one.
var alternatives = []string{"bootstrap.snapshot", "finalBackup.store.s3"}

func TestEveryFieldSetsEveryFieldOfTheSpec(t *testing.T) {
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(everyField), &spec); err != nil {
		t.Fatal(err)
	}
	var check func(path string, of reflect.Type, value any)
	check = func(path string, of reflect.Type, value any) {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() == reflect.Slice {
			items, _ := value.([]any)
			if len(items) == 0 {
				t.Errorf("%s is empty", path)
				return
			}
			check(path, of.Elem(), items[0])
			return
		}
		if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1alpha1.MemcachedSpec]().PkgPath() {
			return
		}
		values, _ := value.(map[string]any)
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			fieldPath := strings.TrimPrefix(path+"."+name, ".")
			fieldValue, isSet := values[name]
			switch {
			case name == "-":
			case isSet:
				check(fieldPath, field.Type, fieldValue)
			case !slices.Contains(alternatives, fieldPath):
				t.Errorf("%s is not set", fieldPath)
			}
		}
	}
	check("", reflect.TypeFor[v1alpha1.MemcachedSpec](), spec)
}

func (env *testEnv) exists(name string, o client.Object) bool {
	env.Helper()
	err := env.admin.Get(env.ctx, types.NamespacedName{Namespace: env.namespace, Name: name}, o)
	env.must(client.IgnoreNotFound(err))
	return err == nil
}

func (env *testEnv) wantCondition(m *v1alpha1.Memcached, kind string, status metav1.ConditionStatus, reason string, words ...string) {
	env.Helper()
	c := meta.FindStatusCondition(m.Status.Conditions, kind)
	if c == nil {
		env.Fatalf("no condition %s in %+v", kind, m.Status.Conditions)
	}
	if c.Status != status || c.Reason != reason || c.ObservedGeneration != m.Generation {
		env.Errorf("%s is %s %s %q of generation %d, want %s %s of %d", kind, c.Status, c.Reason, c.Message, c.ObservedGeneration, status, reason, m.Generation)
	}
	for _, word := range words {
		if !strings.Contains(c.Message, word) {
			env.Errorf("message of %s is %q, want %q in it", kind, c.Message, word)
		}
	}
}

// runPod creates a ready pod as the ReplicaSet controller and the kubelet do.
func (env *testEnv) runPod(shard, suffix, ip string) *corev1.Pod {
	env.Helper()
	pod := env.createPod(shard, suffix)
	env.setPod(pod, ip, true, "containerd://"+suffix)
	return pod
}

// createPod creates a shard's pod as the ReplicaSet controller does.
func (env *testEnv) createPod(shard, suffix string) *corev1.Pod {
	env.Helper()
	var set appsv1.ReplicaSet
	env.read(shard, &set)
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: set.Spec.Template.Spec}
	pod.Name, pod.Namespace = shard+"-"+suffix, env.namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	pod.Spec.NodeName = "node1"
	env.must(env.admin.Create(env.ctx, pod))
	return pod
}

func (env *testEnv) setPod(pod *corev1.Pod, ip string, ready bool, container string) {
	env.Helper()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.ContainersReady, Status: status}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: resources.Container, ContainerID: container, Ready: ready, Image: "i", ImageID: "i"}},
	}
	env.must(env.admin.Status().Update(env.ctx, pod))
}

func (env *testEnv) answer(pod *corev1.Pod, start agentwire.Start, version string) {
	env.agents[pod.Status.PodIP] = agentwire.Status{
		Phase: agentwire.PhaseServing, PodUID: string(pod.UID), Version: version, Start: start,
		Restart: pod.Annotations[v1alpha1.AnnotationRestart],
	}
}

// passPreflight makes the preflight checks of a Memcached find a version.
func (env *testEnv) passPreflight(name, version string) {
	env.Helper()
	var pods corev1.PodList
	env.must(env.admin.List(env.ctx, &pods, client.InNamespace(env.namespace), client.MatchingLabels(resources.PreflightLabels(name))))
	for _, pod := range pods.Items {
		pod.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
			Name: resources.Container, Image: "i", ImageID: "i",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: fmt.Sprintf("{\"version\":%q}", version), ContainerID: "containerd://p"}},
		}}}
		env.must(env.admin.Status().Update(env.ctx, &pod))
	}
}

// removePod deletes a pod immediately, as the kubelet does when its containers have terminated.
func (env *testEnv) removePod(pod *corev1.Pod) {
	env.Helper()
	env.must(env.admin.Delete(env.ctx, pod, client.GracePeriodSeconds(0)))
}

func TestEveryObjectIsCreatedAndOwned(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 3")
	m := env.converge("cache")
	for _, key := range keysOf("cache", 3) {
		o := resources.NewObject(key.Kind)
		env.read(key.Name, o)
		if !metav1.IsControlledBy(o, m) {
			t.Errorf("%s is not controlled by the Memcached", key)
		}
	}
	env.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionFalse, v1alpha1.ReasonShardsNotReady, "cache-0, cache-1, cache-2")
	env.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonShardsStarting)
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
	if m.Status.Phase != v1alpha1.PhaseProgressing || m.Status.Ready != "0/3" || m.Status.Size != 3 {
		t.Errorf("status %+v", m.Status)
	}
}

// The pods start one after another, each in several steps, with a reconcile after each step.
func TestCreationWritesEachObjectOnce(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 3")
	env.converge("cache")
	if m := env.get("cache"); m.Status.Size != 3 || len(m.Status.Servers) != 3 {
		t.Errorf("after the first write the status has %d shards and the servers %v", m.Status.Size, m.Status.Servers)
	}
	var pods []*corev1.Pod
	for ordinal := range 3 {
		pods = append(pods, env.createPod(resources.ShardName("cache", ordinal), "a"))
		env.reconcile("cache")
	}
	for i, pod := range pods {
		ip := "10.0.0." + strconv.Itoa(i+1)
		env.setPod(pod, ip, false, "containerd://a")
		env.reconcile("cache")
		env.setPod(pod, ip, true, "containerd://a")
		env.answer(pod, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
		env.reconcile("cache")
	}
	m := env.converge("cache")
	// the Secret, and the status when the objects are created, and when each shard has a pod and is ready
	if got, want := env.writes.Load(), int64(len(keysOf("cache", 3))+1+1+2*3); got != want {
		t.Errorf("%d writes, want %d", got, want)
	}
	env.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	for _, shard := range m.Status.Shards {
		if !shard.Ready || !shard.Current || shard.Start != v1alpha1.StartCold || shard.Revision == "" {
			t.Errorf("shard %+v", shard)
		}
	}
	for ordinal, events := 0, env.recorded(); ordinal < 3; ordinal++ {
		env.wantEvent(events, "shard "+resources.ShardName("cache", ordinal)+" is ready in pod ")
	}
}

func TestStatusComputedFromAnOldVersionIsNotWritten(t *testing.T) {
	env := newEnv(t)
	stale := env.create("cache", "size: 1")
	env.converge("cache")
	before := env.get("cache")
	previous, err := statusWriter{env.reconciler.Client}.write(env.ctx, stale, v1alpha1.MemcachedStatus{Ready: "invented"})
	if previous != nil || !errors.Is(err, apiserver.ErrStale) {
		t.Errorf("written: %t, error %v", previous != nil, err)
	}
	if diff := cmp.Diff(before.Status, env.get("cache").Status); diff != "" {
		t.Errorf("the status was written (-before +after):\n%s", diff)
	}
}

func TestFieldsOfOtherOwnersAreKept(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	var service corev1.Service
	env.read("cache-0", &service)
	service.Annotations = map[string]string{"service.example.com/balancer": "internal"}
	env.must(env.admin.Update(env.ctx, &service))
	before := env.writes.Load()
	env.converge("cache")
	env.read("cache-0", &service)
	if service.Annotations["service.example.com/balancer"] != "internal" || env.writes.Load() != before {
		t.Errorf("annotations %v after %d writes, want the added one and no write", service.Annotations, env.writes.Load()-before)
	}
}

func TestDeletedObjectsAreRecreated(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 2")
	env.converge("cache")
	for _, key := range keysOf("cache", 2) {
		o := resources.NewObject(key.Kind)
		env.read(key.Name, o)
		env.must(env.admin.Delete(env.ctx, o))
	}
	env.converge("cache")
	for _, key := range keysOf("cache", 2) {
		env.read(key.Name, resources.NewObject(key.Kind))
	}
}

func TestScalingInDeletesTheHighestOrdinalsFirst(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 5")
	env.converge("cache")
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](2) })
	var order []string
	for _, o := range plan.Make(env.observe("cache"), env.reconciler.Options).Actions.ScaleIn {
		order = append(order, string(resources.KeyOf(o).Kind)+" "+o.GetName())
	}
	want := []string{"Service cache-4", "ReplicaSet cache-4", "Service cache-3", "ReplicaSet cache-3", "Service cache-2", "ReplicaSet cache-2"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order of deletes (-want +got):\n%s", diff)
	}
	m := env.converge("cache")
	if env.exists("cache-2", &appsv1.ReplicaSet{}) || !env.exists("cache-1", &appsv1.ReplicaSet{}) || m.Status.Size != 2 {
		t.Errorf("shards 0 and 1 must stay, 2 to 4 must be deleted; size in the status: %d", m.Status.Size)
	}
	env.wantEvent(env.recorded(), v1alpha1.EventScaled+" from 5 to 2 shards. Keys that return to a remaining shard may have an old value")
}

func TestSizeZeroDeletesAllShards(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](0) })
	m := env.converge("cache")
	if env.exists("cache-0", &appsv1.ReplicaSet{}) {
		t.Error("shard 0 still exists")
	}
	env.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionFalse, v1alpha1.ReasonNoShards)
	if m.Status.Phase != v1alpha1.PhaseRunning {
		t.Errorf("phase %s, want Running", m.Status.Phase)
	}
}

func TestStatusReportsReadyShards(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 2")
	env.converge("cache")
	env.recorded()
	for ordinal, shard := range []string{"cache-0", "cache-1"} {
		pod := env.runPod(shard, "a", "10.0.0."+strconv.Itoa(ordinal+1))
		env.answer(pod, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
	}
	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	env.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonUpToDate)
	if m.Status.Phase != v1alpha1.PhaseRunning || m.Status.Ready != "2/2" || m.Status.Version != "1.6.45" {
		t.Errorf("status %+v", m.Status)
	}
	if diff := cmp.Diff([]string{"cache-0-a", "cache-1-a"}, m.Status.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cache-0." + env.namespace + ".svc:11211", "cache-1." + env.namespace + ".svc:11211"}, m.Status.Servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if shard := m.Status.Shards[1]; shard.Start != v1alpha1.StartCold || shard.Version != "1.6.45" || !shard.Current || shard.NodeName != "node1" {
		t.Errorf("shard 1: %+v", shard)
	}
	events := env.recorded()
	env.wantEvent(events, v1alpha1.EventShardReady)
	if slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, v1alpha1.EventShardStartedEmpty) }) {
		t.Errorf("a first start is no loss: %q", events)
	}
}

func TestEmptyStartOfAnotherPodIsReported(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	old := env.runPod("cache-0", "old", "10.0.0.1")
	env.answer(old, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
	env.converge("cache")
	env.recorded()

	env.must(env.admin.Delete(env.ctx, old)) // it keeps serving until its replacement is ready
	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	replacement := env.runPod("cache-0", "new", "10.0.0.2")
	env.answer(replacement, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
	env.removePod(old)
	m = env.converge("cache")
	if shard := m.Status.Shards[0]; shard.PodName != "cache-0-new" || shard.Start != v1alpha1.StartCold || shard.ContainerID != "new" {
		t.Errorf("shard %+v", shard)
	}
	env.wantEvent(env.recorded(), v1alpha1.EventShardStartedEmpty)
}

func TestEmptyStartAfterLossOfTheReplicaSetIsReported(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	old := env.runPod("cache-0", "old", "10.0.0.1")
	env.answer(old, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
	env.converge("cache")
	env.recorded()

	set := resources.NewObject(resources.KindReplicaSet)
	env.read("cache-0", set)
	env.must(env.admin.Delete(env.ctx, set))
	env.removePod(old)
	if m := env.converge("cache"); m.Status.Size != 1 {
		t.Errorf("size %d while the shard is recreated", m.Status.Size)
	}
	replacement := env.runPod("cache-0", "new", "10.0.0.2")
	env.answer(replacement, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
	env.converge("cache")
	env.wantEvent(env.recorded(), v1alpha1.EventShardStartedEmpty)
}

func TestRestartInPlaceIsReportedWithItsItems(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	pod := env.runPod("cache-0", "a", "10.0.0.1")
	env.answer(pod, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.38")
	env.converge("cache")
	env.recorded()

	env.setPod(pod, "10.0.0.1", true, "containerd://second")
	env.answer(pod, agentwire.Start{Result: agentwire.StartWarm, Items: 999, ItemsBefore: 1000, At: time.Now()}, "1.6.45")
	m := env.converge("cache")
	if shard := m.Status.Shards[0]; shard.Start != v1alpha1.StartWarm || shard.Items != 999 || shard.ItemsBefore != 1000 || shard.Version != "1.6.45" {
		t.Errorf("shard after the container's restart: %+v", shard)
	}
	env.wantEvent(env.recorded(), "999 of 1000 items")

	pod.Annotations[v1alpha1.AnnotationRestart] = "please"
	env.must(env.admin.Update(env.ctx, pod)) // which the agent has not read yet
	if m = env.converge("cache"); m.Status.Shards[0].Restart != "" {
		t.Errorf("an answer from before the restart was used: %+v", m.Status.Shards[0])
	}
	env.answer(pod, agentwire.Start{Result: agentwire.StartWarm, Items: 1200, ItemsBefore: 1200, At: time.Now()}, "1.6.45")
	if m = env.converge("cache"); m.Status.Shards[0].Restart != "please" || m.Status.Shards[0].Items != 1200 {
		t.Errorf("shard after the restart by annotation: %+v", m.Status.Shards[0])
	}
	env.wantEvent(env.recorded(), "1200 of 1200 items")
}

func TestAgentThatDoesNotAnswerIsQueriedAgain(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	pod := env.runPod("cache-0", "a", "10.0.0.1")
	result, err := env.reconciler.Reconcile(env.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: env.namespace, Name: "cache"}})
	if err != nil || result.RequeueAfter != plan.AgentRetryMin {
		t.Fatalf("result %+v, error %v; want a requeue after %s", result, err, plan.AgentRetryMin)
	}
	m := env.get("cache")
	since := m.Status.Shards[0].AgentUnreachableSince
	if since == nil {
		t.Fatalf("the status doesn't record it: %+v", m.Status.Shards[0])
	}
	for _, c := range []struct{ age, wait time.Duration }{{20 * time.Second, 5 * time.Second}, {4 * time.Minute, 30 * time.Second}, {5 * time.Minute, 30 * time.Second}} {
		env.reconciler.Clock = testclock.NewFakePassiveClock(since.Add(c.age))
		result, err := env.reconciler.Reconcile(env.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: env.namespace, Name: "cache"}})
		if err != nil || result.RequeueAfter != c.wait {
			t.Errorf("unreachable for %s: result %+v, error %v; want a requeue after %s", c.age, result, err, c.wait)
		}
		m = env.get("cache")
		if degraded := meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDegraded); degraded != (c.age == 5*time.Minute) {
			t.Errorf("unreachable for %s: Degraded is %t", c.age, degraded)
		}
	}
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonAgentUnreachable, "shard cache-0", "pod "+pod.Name, "TCP port 11212", "NetworkPolicies")
	env.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	env.wantEvent(env.recorded(), v1alpha1.ReasonAgentUnreachable)
	env.answer(pod, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
	env.agents["10.0.0.1"] = func(s agentwire.Status) agentwire.Status { s.PodUID = "another pod's"; return s }(env.agents["10.0.0.1"])
	if m = env.converge("cache"); m.Status.Shards[0].Start != "" {
		t.Errorf("the answer of another pod at that address was used: %+v", m.Status.Shards[0])
	}
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
}

func TestFixedSpecRecreatesOnlyPodsThatCannotRun(t *testing.T) {
	cannotBePulled := corev1.ContainerStatus{Name: resources.Container, Image: "i", ImageID: "i",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}
	runsUnready := corev1.ContainerStatus{Name: resources.Container, Image: "i", ImageID: "i",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}
	for name, c := range map[string]struct {
		fixed    bool
		status   corev1.ContainerStatus
		replaced bool
	}{
		"the spec was fixed and the pod can't run": {true, cannotBePulled, true},
		"the spec is unchanged":                    {false, cannotBePulled, false},
		"memcached runs and may contain items":     {true, runsUnready, false},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			env.create("cache", "{size: 2, version: 1.6.99}")
			env.converge("cache")
			env.runPod("cache-0", "a", "10.0.0.1")
			pod := env.runPod("cache-1", "a", "10.0.0.2")
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{c.status}}
			env.must(env.admin.Status().Update(env.ctx, pod))
			if c.fixed {
				env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Version = "1.6.45" })
			}
			env.converge("cache")
			env.passPreflight("cache", "1.6.45")
			env.converge("cache")
			if !env.exists("cache-0-a", &corev1.Pod{}) {
				t.Error("a ready pod was deleted")
			}
			var after corev1.Pod
			if replaced := !env.exists("cache-1-a", &after) || after.DeletionTimestamp != nil; replaced != c.replaced {
				t.Errorf("the pod is recreated: %t, want %t", replaced, c.replaced)
			}
		})
	}
}

func TestPausedChangesNothingAndReportsTheStatus(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 2")
	env.converge("cache")
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused, m.Spec.Size = true, ptr.To[int32](1) })
	env.must(env.admin.Delete(env.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "cache-0"}}))
	m := env.converge("cache")
	if env.exists("cache-0", &corev1.Service{}) || !env.exists("cache-1", &appsv1.ReplicaSet{}) {
		t.Error("an object was changed while paused")
	}
	env.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	if m.Status.Phase != v1alpha1.PhasePaused {
		t.Errorf("phase %s", m.Status.Phase)
	}
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = false })
	env.converge("cache")
	if !env.exists("cache-0", &corev1.Service{}) || env.exists("cache-1", &appsv1.ReplicaSet{}) {
		t.Error("the changes were not applied after the pause")
	}
}

func TestInvalidVersionOrImageChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		edit           func(*v1alpha1.MemcachedSpec)
		reason, advice string
	}{
		"a version with known remote crashes": {func(s *v1alpha1.MemcachedSpec) { s.Version = "1.6.2" }, v1alpha1.ReasonVersionUnsupported, "Use 1.6.3 or newer"},
		"an image that isn't a reference":     {func(s *v1alpha1.MemcachedSpec) { s.Image = "memcached:" }, v1alpha1.ReasonImageInvalid, "spec.image"},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			env.create("cache", "{size: 1, version: 1.6.38}")
			env.converge("cache")
			env.runPod("cache-0", "a", "10.0.0.1")
			env.converge("cache")
			env.recorded()
			before := env.writes.Load()
			env.change("cache", func(m *v1alpha1.Memcached) { c.edit(&m.Spec) })
			m := env.converge("cache")
			env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, c.reason, c.advice)
			if n := env.writes.Load() - before; n != 1 {
				t.Errorf("%d writes, want only the status", n)
			}
			env.wantCondition(m, v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
			if m.Status.Version != "1.6.38" || m.Status.Ready != "1/1" || m.Status.Phase != v1alpha1.PhaseBlocked {
				t.Errorf("version %s, ready %s, phase %s", m.Status.Version, m.Status.Ready, m.Status.Phase)
			}
			env.wantEvent(env.recorded(), c.reason)
			env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Version, m.Spec.Image = "1.6.38", "" })
			env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
		})
	}
}

func TestUnknownTimeZoneBlocksUpdate(t *testing.T) {
	env := newEnv(t)
	env.create("cache", `{size: 1, updateStrategy: {maintenanceWindows: [{start: "00:00", durationSeconds: 86400, timeZone: Europe/Atlantis}]}}`)
	env.converge("cache")
	env.runPod("cache-0", "a", "10.0.0.1")
	env.converge("cache")
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Threads = ptr.To[int32](2) })
	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonUpdateStrategyInvalid, "Europe/Atlantis")
	if u := m.Status.Update; u == nil || u.Gate != v1alpha1.GateUpdateStrategyInvalid || !strings.HasPrefix(u.Message, "shard 1 of 1") {
		t.Errorf("update %+v", u)
	}
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.UpdateStrategy.MaintenanceWindows[0].TimeZone = "Europe/Berlin" })
	m = env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
	if u := m.Status.Update; u == nil || u.Gate == v1alpha1.GateUpdateStrategyInvalid {
		t.Errorf("update %+v", u)
	}
}

func TestUpdateByHandoverRequiresAHandover(t *testing.T) {
	env := newEnv(t)
	env.create("cache", `{size: 1, handover: {mode: Disabled}, updateStrategy: {type: Handover}}`)
	env.converge("cache")
	env.runPod("cache-0", "a", "10.0.0.1")
	env.converge("cache")
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Threads = ptr.To[int32](2) })
	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonUpdateStrategyInvalid, "set handover.mode to Strict or Available")
	if u := m.Status.Update; u == nil || u.Gate != v1alpha1.GateUpdateStrategyInvalid {
		t.Errorf("update %+v", u)
	}
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.UpdateStrategy.Type = v1alpha1.UpdateInPlace })
	env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
}

func TestForeignObjectIsNeitherAdoptedNorDeleted(t *testing.T) {
	env := newEnv(t)
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "cache-0"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "web"}}}
	env.must(env.admin.Create(env.ctx, theirs))
	env.create("cache", "size: 2")
	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNameConflict, "Service cache-0 already exists and isn't managed by this Memcached; delete it, or create the Memcached with another name")
	var after corev1.Service
	env.read("cache-0", &after)
	if diff := cmp.Diff(theirs, &after); diff != "" {
		t.Errorf("the Service was changed:\n%s", diff)
	}
	if len(m.Status.Servers) != 1 {
		t.Errorf("servers %v contain the foreign Service", m.Status.Servers)
	}
	if !env.exists("cache-1", &corev1.Service{}) {
		t.Error("the other shard must not wait for this one")
	}
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](0) })
	env.converge("cache")
	if !env.exists("cache-0", &corev1.Service{}) {
		t.Error("scaling in deleted the foreign Service")
	}
	env.must(env.admin.Delete(env.ctx, theirs))
	env.skipAnHour()
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](1) })
	env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
}

func TestObjectOfAnotherMemcachedIsForeign(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	env.create("cache-0", "size: 1") // its headless Service has the name of cache's shard 0
	m := env.converge("cache-0")
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNameConflict, "Service cache-0")
	if env.converge("cache").Status.Servers == nil {
		t.Error("the first one lost its shard's Service")
	}
}

func TestObjectsOfDeletedMemcachedOfTheSameNameAreWaitedFor(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	first := env.converge("cache")
	env.must(env.admin.Delete(env.ctx, first))
	env.create("cache", "size: 1") // no garbage collector runs here
	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonWaitingForGarbageCollection, "ReplicaSet cache-0")
	var set appsv1.ReplicaSet
	env.read("cache-0", &set)
	if !metav1.IsControlledBy(&set, first) {
		t.Error("it was adopted before the garbage collector deleted it")
	}
	for _, key := range keysOf("cache", 1) {
		o := resources.NewObject(key.Kind)
		env.read(key.Name, o)
		env.must(env.admin.Delete(env.ctx, o))
	}
	env.must(env.admin.Delete(env.ctx, handoverSecret(env)))
	m = env.converge("cache")
	env.read("cache-0", &set)
	if !metav1.IsControlledBy(&set, m) {
		t.Error("the objects were not recreated")
	}
}

func TestOrphansOfThisNameAreAdopted(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	first := env.converge("cache")
	uids := map[resources.Key]types.UID{}
	for _, key := range keysOf("cache", 1) { // kubectl delete --cascade=orphan
		o := resources.NewObject(key.Kind)
		env.read(key.Name, o)
		o.SetOwnerReferences(nil)
		env.must(env.admin.Update(env.ctx, o))
		uids[key] = o.GetUID()
	}
	env.must(env.admin.Delete(env.ctx, first))
	env.create("cache", "size: 1")
	m := env.converge("cache")
	for key, uid := range uids {
		o := resources.NewObject(key.Kind)
		env.read(key.Name, o)
		if o.GetUID() != uid || !metav1.IsControlledBy(o, m) {
			t.Errorf("%s was not adopted unchanged", key)
		}
	}
}

func TestApplySparesAnObjectThatTookTheNameSince(t *testing.T) {
	for name, change := range map[string]func(client.Object){
		"ReplicaSet": func(o client.Object) { o.(*appsv1.ReplicaSet).Spec.Replicas = ptr.To[int32](0) },
		"Service":    func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].TargetPort = intstr.FromInt32(1) },
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			env.create("cache", "size: 1")
			env.converge("cache")
			object := map[string]client.Object{"ReplicaSet": &appsv1.ReplicaSet{}, "Service": &corev1.Service{}}[name]
			env.read("cache-0", object)
			change(object)
			env.must(env.admin.Update(env.ctx, object))
			obs := env.observe("cache")
			p := plan.Make(obs, env.reconciler.Options)
			env.must(env.admin.Delete(env.ctx, object))
			other := object.DeepCopyObject().(client.Object)
			other.SetUID("")
			other.SetResourceVersion("")
			other.SetOwnerReferences(nil)
			env.must(env.admin.Create(env.ctx, other))
			if res := env.apply(obs.Memcached, p.Actions); !res.Conflict {
				t.Errorf("no conflict: %+v", res)
			}
			if env.read("cache-0", object); object.GetUID() != other.GetUID() || object.GetResourceVersion() != other.GetResourceVersion() {
				t.Error("the new object was written")
			}
		})
	}
}

// Between the observation and the write, milliseconds pass.
func TestFirstApplySparesAnObjectThatTookTheFreeName(t *testing.T) {
	env := newEnv(t)
	m := env.create("cache", "size: 1")
	foreign := map[string]client.Object{}
	for _, o := range []client.Object{
		// An apply with force could change all but the ReplicaSet.
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "cache"}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "cache"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cache-0"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	} {
		o.SetNamespace(env.namespace)
		foreign[fmt.Sprintf("%T", o)] = o
	}
	obs := env.observe("cache")
	p := plan.Make(obs, env.reconciler.Options)
	for _, o := range foreign {
		env.must(env.admin.Create(env.ctx, o))
	}
	if res := env.apply(m, p.Actions); !res.Conflict {
		t.Errorf("no conflict: %+v", res)
	}
	for kind, o := range foreign {
		after := o.DeepCopyObject().(client.Object)
		if env.read(o.GetName(), after); after.GetResourceVersion() != o.GetResourceVersion() {
			t.Errorf("%s was written", kind)
		}
	}
	if !env.exists("cache-0", &appsv1.ReplicaSet{}) || !env.exists("cache", &corev1.Service{}) {
		t.Error("an object whose name was free wasn't created")
	}
	env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNameConflict)
}

func TestProblemsOfPodsAreReported(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: resources.Container, Image: "i:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	crashed := waiting("CrashLoopBackOff", "back-off 10s")
	crashed.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no memcached in this image"}
	for name, c := range map[string]struct {
		status        corev1.PodStatus
		reason, words string
	}{
		"an image that can't be pulled":       {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImagePullBackOff", "not found")}}, v1alpha1.ReasonImageCannotBePulled, "not found"},
		"an agent image that can't be pulled": {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{waiting("ErrImagePull", "denied")}}, v1alpha1.ReasonImageCannotBePulled, "denied"},
		"a crash":                             {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{crashed}}, v1alpha1.ReasonShardCrashes, "no memcached in this image"},
		"no node accepts the pod": {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}}, v1alpha1.ReasonUnschedulable, "0/3 nodes"},
		"a node that doesn't respond": {corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}}, v1alpha1.ReasonNodeLost, "node1"},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			env.create("cache", "size: 1")
			env.converge("cache")
			pod := env.runPod("cache-0", "a", "10.0.0.1")
			pod.Status = c.status
			env.must(env.admin.Status().Update(env.ctx, pod))
			m := env.converge("cache")
			env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, c.reason, "cache-0", c.words)
			if !strings.Contains(m.Status.Shards[0].Message, c.words) {
				t.Errorf("message of the shard: %q", m.Status.Shards[0].Message)
			}
		})
	}
}

func TestImageOfAnotherVersionThanItsTagIsReported(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "{size: 1, version: 1.6.38}")
	env.converge("cache")
	pod := env.runPod("cache-0", "a", "10.0.0.1")
	env.answer(pod, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.18")
	env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonVersionMismatch, "shard cache-0: image docker.io/library/memcached:1.6.38 contains memcached 1.6.18, but its tag says 1.6.38; use an image whose tag matches its version")
}

// Only the running memcached reports the version of an image whose reference has none.
func TestLoginIsNotSwitchedOnForARunningVersionThatBypassesIt(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "{size: 1, image: registry.example.com/memcached:latest}")
	env.converge("cache")
	pod := env.runPod("cache-0", "a", "10.0.0.1")
	env.answer(pod, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.38")
	env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected, "")
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Auth = &v1alpha1.Auth{} })
	env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonVersionUnsupported,
		"shard cache-0 runs image registry.example.com/memcached:latest: version 1.6.38 isn't supported with spec.auth")
	env.read(pod.Name, pod)
	if words := pod.Annotations[annotations.Arguments]; strings.Contains(words, "-Y") {
		t.Errorf("the shard requires logins that clients can bypass: %s", words)
	}
	// Another image is checked before it runs.
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Image = "registry.example.com/memcached:stable" })
	if c := meta.FindStatusCondition(env.converge("cache").Status.Conditions, v1alpha1.ConditionDegraded); c.Reason == v1alpha1.ReasonVersionUnsupported {
		t.Errorf("the version of the former image rejects another one: %s", c.Message)
	}
}

func TestCacheOfObjectsDoesNotGrow(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 3")
	m := env.converge("cache")
	name := client.ObjectKeyFromObject(m)
	if n, want := len(env.reconciler.memories.get(name).UpToDate), len(keysOf("cache", 3)); n != want {
		t.Fatalf("%d objects, want %d", n, want)
	}
	env.change("cache", func(m *v1alpha1.Memcached) { *m.Spec.Size = 1 })
	env.converge("cache")
	if n, want := len(env.reconciler.memories.get(name).UpToDate), len(keysOf("cache", 1)); n != want {
		t.Errorf("%d objects after scaling in, want %d", n, want)
	}
	env.must(env.admin.Delete(env.ctx, m))
	_, err := env.reconciler.Reconcile(env.ctx, ctrl.Request{NamespacedName: name})
	env.must(err)
	if memory := env.reconciler.memories.get(name); memory.UpToDate != nil || memory.replaced.version != "" {
		t.Errorf("the deleted Memcached has the memory %+v", memory)
	}
}

// The API server would reject a status that is computed from a version that the operator has
// replaced.
func TestReconcileWaitsUntilTheCacheContainsTheLastWrite(t *testing.T) {
	env := newEnv(t)
	now := testclock.NewFakePassiveClock(time.Now())
	env.reconciler.Clock = now
	old := env.create("cache", "size: 1")
	env.reconcile("cache")
	stale := &staleClient{Client: env.reconciler.Client, memcached: old}
	env.reconciler.Client = stale
	before := env.writes.Load()
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(old)}
	result, err := env.reconciler.Reconcile(env.ctx, request)
	if env.must(err); env.writes.Load() != before || result.RequeueAfter != apiserver.StaleRequeue || stale.lists != 0 {
		t.Errorf("%d writes and %d lists, requeue after %s", env.writes.Load()-before, stale.lists, result.RequeueAfter)
	}
	now.SetTime(now.Now().Add(5 * time.Second)) // an etcd that was restored keeps the old version
	if _, err = env.reconciler.Reconcile(env.ctx, request); err != nil || stale.lists == 0 {
		t.Errorf("five seconds later: %d lists, error %v", stale.lists, err)
	}
}

// staleClient reads an old version of a Memcached.
type staleClient struct {
	client.Client
	memcached *v1alpha1.Memcached
	lists     int
}

// Get implements client.Reader.
func (s *staleClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if m, ok := o.(*v1alpha1.Memcached); ok {
		s.memcached.DeepCopyInto(m)
		return nil
	}
	return s.Client.Get(ctx, key, o, options...)
}

// List implements client.Reader.
func (s *staleClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	s.lists++
	return s.Client.List(ctx, list, options...)
}
