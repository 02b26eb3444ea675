package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/index"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// testEnv is a namespace of one test, and the reconciler of Memcacheds in it with the operator's permissions.
type testEnv struct {
	testing.TB
	ctx        context.Context
	namespace  string
	reconciler *memcached.Reconciler
	agents     fakeAgents
	events     *events.FakeRecorder
	// writes is the number of the operator's requests that are not reads.
	writes *atomic.Int64
}

// fakeAgents are the agents' answers by pod IP.
type fakeAgents map[string]agentwire.Status

func (a fakeAgents) Status(_ context.Context, podIP string) (agentwire.Status, error) {
	status, ok := a[podIP]
	if !ok {
		return agentwire.Status{}, fmt.Errorf("no answer from %s", podIP)
	}
	return status, nil
}

var namespaces atomic.Int64

// parallel has the names of the tests that run beside others.
var parallel sync.Map

// newEnv returns an environment of a test. A test that isn't a case of another one runs beside others.
func newEnv(t testing.TB) *testEnv {
	t.Helper()
	if test, ok := t.(*testing.T); ok && !strings.Contains(t.Name(), "/") {
		if _, again := parallel.LoadOrStore(t.Name(), true); !again {
			test.Parallel()
		}
	}
	env := &testEnv{TB: t, ctx: t.Context(), namespace: fmt.Sprintf("memcached-%d", namespaces.Add(1)), agents: fakeAgents{},
		events: events.NewFakeRecorder(100), writes: &atomic.Int64{}}
	env.must(admin.Create(env.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.namespace}}))
	config := rest.CopyConfig(server.Operator)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countWrites{next, env.writes} })
	direct, err := client.New(config, client.Options{Scheme: simtest.Scheme()})
	env.must(err)
	env.reconciler = &memcached.Reconciler{Client: unindexed{direct, env.namespace}, APIReader: direct, AgentClient: env.agents, Recorder: env.events, Clock: clock.RealClock{},
		Options: resources.Options{
			AgentImage:        "ghcr.io/memcached-operator/memcached-operator:v1.0.0",
			DefaultImage:      "docker.io/library/memcached:1.6.45",
			OperatorNamespace: "memcached-operator-system",
		}, DefaultImageUpdates: 1}
	return env
}

// unindexed is a client without a cache, of an operator that watches one namespace. The API
// server has none of the cache's indexes, and the labels of a list select the same objects.
type unindexed struct {
	client.Client
	namespace string
}

// List implements client.Reader.
func (c unindexed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	o.FieldSelector, o.Namespace = nil, c.namespace
	return c.Client.List(ctx, list, o)
}

// countWrites counts the requests other than reads.
type countWrites struct {
	next  http.RoundTripper
	count *atomic.Int64
}

func (c countWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		c.count.Add(1)
	}
	return c.next.RoundTrip(r)
}

func (env *testEnv) must(err error) {
	env.Helper()
	if err != nil {
		env.Fatal(err)
	}
}

// everyField returns a spec in which every field is set.
func (env *testEnv) everyField() string {
	env.Helper()
	raw, err := os.ReadFile("../../controllers/memcached/testdata/every_field.yaml")
	env.must(err)
	return string(raw)
}

// create creates a Memcached with a spec in YAML.
func (env *testEnv) create(name, spec string) *v1alpha1.Memcached {
	env.Helper()
	m, err := env.tryCreate(name, spec)
	env.must(err)
	return m
}

func (env *testEnv) tryCreate(name, spec string) (*v1alpha1.Memcached, error) {
	env.Helper()
	o := map[string]any{}
	env.must(yaml.Unmarshal([]byte(spec), &o))
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Memcached"))
	u.SetName(name)
	u.SetNamespace(env.namespace)
	u.Object["spec"] = o
	if err := admin.Create(env.ctx, u, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		return nil, err
	}
	return env.get(name), nil
}

func (env *testEnv) get(name string) *v1alpha1.Memcached {
	env.Helper()
	m := &v1alpha1.Memcached{}
	env.read(name, m)
	return m
}

func (env *testEnv) read(name string, o client.Object) {
	env.Helper()
	env.must(admin.Get(env.ctx, types.NamespacedName{Namespace: env.namespace, Name: name}, o))
}

// change edits a Memcached as a user does.
func (env *testEnv) change(name string, edit func(*v1alpha1.Memcached)) {
	env.Helper()
	m := env.get(name)
	edit(m)
	env.must(admin.Update(env.ctx, m))
}

// reconcile runs one reconcile and returns the Memcached after it.
func (env *testEnv) reconcile(name string) *v1alpha1.Memcached {
	env.Helper()
	_, err := env.reconciler.Reconcile(env.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: env.namespace, Name: name}})
	env.must(err)
	return env.get(name)
}

// converge reconciles until the operator writes nothing more.
func (env *testEnv) converge(name string) *v1alpha1.Memcached {
	env.Helper()
	for range 10 {
		before := env.writes.Load()
		if m := env.reconcile(name); env.writes.Load() == before {
			return m
		}
	}
	env.Fatal("the operator still writes after ten reconciles")
	return nil
}

// recorded returns the events since the last call.
func (env *testEnv) recorded() []string {
	var all []string
	for {
		select {
		case e := <-env.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func (env *testEnv) exists(name string, o client.Object) bool {
	env.Helper()
	err := admin.Get(env.ctx, types.NamespacedName{Namespace: env.namespace, Name: name}, o)
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
	env.must(admin.Create(env.ctx, pod))
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
	env.must(admin.Status().Update(env.ctx, pod))
}

func (env *testEnv) answer(pod *corev1.Pod, start agentwire.Start, version string) {
	env.agents[pod.Status.PodIP] = agentwire.Status{
		Phase: agentwire.PhaseServing, PodUID: string(pod.UID), Version: version, Start: start,
		Restart: pod.Annotations[v1alpha1.AnnotationRestart],
	}
}

// removePod deletes a pod immediately, as the kubelet does when its containers have terminated.
func (env *testEnv) removePod(pod *corev1.Pod) {
	env.Helper()
	env.must(admin.Delete(env.ctx, pod, client.GracePeriodSeconds(0)))
}

// The controller runs as in main, with caches, watches and only the rights of config/rbac.
func TestManagerWatchesWithTheOperatorsRights(t *testing.T) {
	env := newEnv(t)
	eventually := env.manage()
	env.create("cache", "size: 2")
	eventually("both shards are created", func() bool { return env.get("cache").Status.Size == 2 })

	var set appsv1.ReplicaSet
	env.read("cache-1", &set)
	uid := set.UID
	env.must(admin.Delete(env.ctx, &set))
	eventually("a deleted ReplicaSet is recreated", func() bool { return env.exists("cache-1", &set) && set.UID != uid })

	set.Labels = nil
	env.must(admin.Update(env.ctx, &set))
	eventually("an object that left the cache with its label is corrected", func() bool {
		env.read("cache-1", &set)
		return set.Labels[v1alpha1.LabelManagedBy] != ""
	})
	env.runPod("cache-0", "a", "10.0.0.1")
	env.runPod("cache-1", "a", "10.0.0.2")
	eventually("the pods' readiness is reported", func() bool { return env.get("cache").Status.Ready == "2/2" })
	eventually("each shard has its event", func() bool {
		var list corev1.EventList
		env.must(admin.List(env.ctx, &list, client.InNamespace(env.namespace)))
		messages := map[string]bool{}
		for _, e := range list.Items {
			if e.Reason == v1alpha1.EventShardReady {
				messages[e.Message] = true
			}
		}
		return len(messages) == 2
	})
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](0) })
	eventually("the shards are deleted", func() bool { return env.get("cache").Status.Size == 0 })
	eventually("an event is recorded", func() bool {
		var list corev1.EventList
		env.must(admin.List(env.ctx, &list, client.InNamespace(env.namespace)))
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == v1alpha1.EventScaled })
	})
}

// manage runs the controller in a manager until the test ends. It returns a function that
// waits until a condition is met.
func (env *testEnv) manage() (eventually func(what string, ok func() bool)) {
	env.Helper()
	mgr, err := ctrl.NewManager(server.Operator, ctrl.Options{Scheme: simtest.Scheme(), Cache: cache.Options(env.namespace), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}})
	env.must(err)
	r := &memcached.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), AgentClient: podAgents{env}, Recorder: mgr.GetEventRecorder("memcached-operator"), Clock: env.reconciler.Clock, Options: env.reconciler.Options}
	env.must(index.Setup(env.ctx, mgr.GetFieldIndexer()))
	env.must(r.SetupWithManager(mgr))
	ctx, stop := context.WithCancel(env.ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	env.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			env.Error(err)
		}
	})
	return func(what string, ok func() bool) {
		env.Helper()
		if err := wait.PollUntilContextTimeout(env.ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return ok(), nil }); err != nil {
			env.Fatalf("%s: %v", what, err)
		}
	}
}

// podAgents answers for every pod that it started empty.
type podAgents struct{ *testEnv }

func (a podAgents) Status(ctx context.Context, podIP string) (agentwire.Status, error) {
	var pods corev1.PodList
	if err := admin.List(ctx, &pods, client.InNamespace(a.namespace)); err != nil {
		return agentwire.Status{}, err
	}
	for _, pod := range pods.Items {
		if pod.Status.PodIP == podIP {
			return agentwire.Status{Phase: agentwire.PhaseServing, PodUID: string(pod.UID), Version: "1.6.45",
				Start: agentwire.Start{Result: agentwire.StartCold, At: pod.CreationTimestamp.Time}}, nil
		}
	}
	return agentwire.Status{}, fmt.Errorf("no answer from %s", podIP)
}

// With only the operator's rights.
func TestManagerWatchesRestoresAndBackups(t *testing.T) {
	env := newEnv(t)
	eventually := env.manage()
	env.create("cache", "{size: 1, refill: {}, bootstrap: {backupRef: {name: nightly}}, deletionPolicy: Backup, finalBackup: {store: {persistentVolumeClaim: {claimName: store}}}}")
	eventually("the shard is created", func() bool { return env.exists("cache-0", &appsv1.ReplicaSet{}) })
	pod := env.runPod("cache-0", "a", "10.0.0.1")
	pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	env.must(admin.Status().Update(env.ctx, pod))

	restore := &v1alpha1.MemcachedRestore{}
	eventually("the bootstrap's restore is created", func() bool { return env.exists("cache-bootstrap", restore) })
	restore.Status.Phase = v1alpha1.TransferComplete
	env.must(admin.Status().Update(env.ctx, restore))
	eventually("the bootstrap has finished", func() bool { return env.get("cache").Status.Bootstrap.Phase == v1alpha1.TransferComplete })

	backup := &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "nightly"}, Spec: v1alpha1.MemcachedBackupSpec{
		MemcachedRef: v1alpha1.MemcachedReference{Name: "cache"}, Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}}}
	env.must(admin.Create(env.ctx, backup))
	backup.Status.Phase = v1alpha1.TransferComplete
	backup.Status.Snapshot = &v1alpha1.SnapshotStatus{Path: "p", TakenAt: metav1.NewTime(pod.CreationTimestamp.Add(-time.Minute))}
	env.must(admin.Status().Update(env.ctx, backup))
	eventually("the first start is recorded", func() bool { return env.get("cache").Status.Shards[0].Start != "" })
	env.removePod(pod)
	next := env.runPod("cache-0", "b", "10.0.0.2")
	ours := func() []v1alpha1.MemcachedRestore {
		var restores v1alpha1.MemcachedRestoreList
		env.must(admin.List(env.ctx, &restores, client.InNamespace(env.namespace)))
		return slices.DeleteFunc(restores.Items, func(r v1alpha1.MemcachedRestore) bool { return r.Name == "cache-bootstrap" })
	}
	eventually("the lost shard is refilled", func() bool { return len(ours()) == 1 })
	refill := ours()[0]
	refill.Status.Phase = v1alpha1.TransferComplete
	env.must(admin.Status().Update(env.ctx, &refill))
	env.removePod(next)
	eventually("the finished restore of a deleted pod is deleted", func() bool { return len(ours()) == 0 })

	env.runPod("cache-0", "c", "10.0.0.3")
	eventually("the shard is ready", func() bool { return env.get("cache").Status.Ready == "1/1" })
	m := env.get("cache")
	env.must(admin.Delete(env.ctx, m))
	eventually("the final backup is created", func() bool { return env.exists(observation.FinalBackupName(m), backup) })
	backup.Status.Phase, backup.Status.Snapshot = v1alpha1.TransferComplete, &v1alpha1.SnapshotStatus{Path: "p", TakenAt: metav1.Now(), Items: 7}
	env.must(admin.Status().Update(env.ctx, backup))
	eventually("the Memcached is deleted", func() bool { return !env.exists("cache", m) })
	eventually("the event is recorded", func() bool {
		var list corev1.EventList
		env.must(admin.List(env.ctx, &list, client.InNamespace(env.namespace)))
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == v1alpha1.EventFinalBackup })
	})
}

// The cache doesn't even store such a spec, so nothing may be decided by what it stores.
func TestSpecThatIsTooLargeToStoreIsRejected(t *testing.T) {
	env := newEnv(t)
	eventually := env.manage()
	env.create("cache", "size: 2")
	eventually("two shards", func() bool { return env.get("cache").Status.Size == 2 })
	policy := &networkingv1.NetworkPolicy{}
	env.read("cache", policy)
	change := func(clients []networkingv1.NetworkPolicyPeer) {
		env.change("cache", func(m *v1alpha1.Memcached) {
			m.Spec.Size, m.Spec.NetworkPolicy.AllowedClients = ptr.To[int32](1), clients
		})
	}
	clients := slices.Repeat([]networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: slices.Repeat([]string{strings.Repeat("x", 63)}, 20)},
	}}}}, 32)
	change(clients)
	eventually("it is rejected", func() bool {
		c := meta.FindStatusCondition(env.get("cache").Status.Conditions, v1alpha1.ConditionDegraded)
		return c.Reason == v1alpha1.ReasonPodConfigurationTooLarge && strings.Contains(c.Message, "shorten")
	})
	m, after := env.get("cache"), &networkingv1.NetworkPolicy{}
	env.read("cache", after)
	env.read("cache-1", &appsv1.ReplicaSet{})
	if after.ResourceVersion != policy.ResourceVersion || len(m.Spec.NetworkPolicy.AllowedClients) != len(clients) {
		t.Errorf("the policy or the spec, with %d clients, was changed", len(m.Spec.NetworkPolicy.AllowedClients))
	}
	change(clients[:1])
	eventually("the shorter spec is applied", func() bool {
		env.read("cache", after)
		return env.get("cache").Status.Size == 1 && after.ResourceVersion != policy.ResourceVersion
	})
}

// The cache omits what the operator doesn't read. Only its status and its finalizer are written.
func TestWritesKeepWhatTheCacheOmits(t *testing.T) {
	env := newEnv(t)
	eventually := env.manage()
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "cache", Finalizers: []string{"example.com/keep"},
		Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"example.com/large": strings.Repeat("x", 100<<10), v1alpha1.AnnotationRetry: strings.Repeat("x", 2*1024)}}}
	m.Spec.DeletionPolicy = v1alpha1.DeletionBackup
	m.Spec.FinalBackup = &v1alpha1.FinalBackup{Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}}
	env.must(admin.Create(env.ctx, m))
	eventually("the finalizer and the status are written", func() bool {
		got := env.get("cache")
		return slices.Contains(got.Finalizers, v1alpha1.FinalizerFinalBackup) && got.Status.Size == 1
	})
	got := env.get("cache")
	if !slices.Contains(got.Finalizers, "example.com/keep") || got.Labels["team"] != "shop" || len(got.Annotations["example.com/large"]) != 100<<10 ||
		len(got.Annotations[v1alpha1.AnnotationRetry]) != 2*1024 || got.Generation != m.Generation {
		t.Errorf("finalizers %q, labels %q, %d annotations, generation %d", got.Finalizers, got.Labels, len(got.Annotations), got.Generation)
	}
	service := &corev1.Service{}
	env.read("cache-0", service)
	service.Annotations = map[string]string{"example.com/theirs": "x"}
	env.must(admin.Update(env.ctx, service))
	service.Spec.Selector[v1alpha1.LabelInstance] = "other"
	env.must(admin.Update(env.ctx, service))
	eventually("the Service is corrected", func() bool {
		env.read("cache-0", service)
		return service.Spec.Selector[v1alpha1.LabelInstance] == "cache"
	})
	if service.Annotations["example.com/theirs"] != "x" {
		t.Errorf("annotations %q", service.Annotations)
	}
	got.Finalizers = nil
	env.must(admin.Update(env.ctx, got)) // nothing waits for a backup
}

func TestRejectionByTheAPIServerIsReported(t *testing.T) {
	for what, spec := range map[string]string{
		"not a label!": `{size: 1, scheduling: {nodeSelector: {"not a label!": x}}}`,
		"duplicate entries for key": `{size: 1, scheduling: {topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 1},
			{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 2}]}}`,
	} {
		env := newEnv(t)
		env.create("cache", spec)
		m := env.reconcile("cache")
		env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonApplyRejected, "the API server rejected ReplicaSet cache-0: ", what)
		if !env.exists("cache-0", &corev1.Service{}) {
			t.Error("the other objects must be created")
		}
	}
}

func TestExceededQuotaIsReportedAndRetried(t *testing.T) {
	env := newEnv(t)
	env.must(admin.Create(env.ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/replicasets.apps": resource.MustParse("0")}}}))
	env.setQuota("none", "0")
	env.create("cache", "size: 1")
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: env.namespace, Name: "cache"}}
	if _, err := env.reconciler.Reconcile(env.ctx, request); err == nil {
		t.Fatal("no error, so no retry")
	}
	m := env.get("cache")
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonApplyRejected, "the API server rejected ReplicaSet cache-0: ", "exceeded quota")
	env.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonRetrying, "; retrying")
	env.setQuota("none", "9")
	env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
}

// setQuota sets a quota and its status, as the quota controller does.
func (env *testEnv) setQuota(name, hard string) {
	env.Helper()
	var quota corev1.ResourceQuota
	env.read(name, &quota)
	quota.Spec.Hard = corev1.ResourceList{"count/replicasets.apps": resource.MustParse(hard)}
	env.must(admin.Update(env.ctx, &quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"count/replicasets.apps": resource.MustParse("0")}}
	env.must(admin.Status().Update(env.ctx, &quota))
}

func TestDeletedNamespaceGetsNoWrites(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	env.recorded()
	env.must(admin.Delete(env.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.namespace}}))
	env.must(admin.Delete(env.ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "cache-0"}}))
	before := env.get("cache")
	m := env.reconcile("cache") // no error, so no retries
	if diff := cmp.Diff(before.Status, m.Status); diff != "" {
		t.Errorf("the status was written:\n%s", diff)
	}
	if events := env.recorded(); len(events) > 0 {
		t.Errorf("events %q: the API server rejects them", events)
	}
}

func TestSteadyStateNeedsNoWrites(t *testing.T) {
	for name, spec := range map[string]string{"cache": "size: 3", "sessions": ""} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			if spec == "" {
				spec = env.everyField()
			}
			m := env.create(name, spec)
			if m.Spec.Bootstrap != nil { // which has finished
				m.Status.Bootstrap = &v1alpha1.BootstrapStatus{RestoreName: name + "-bootstrap", Phase: v1alpha1.TransferComplete}
				env.must(admin.Status().Update(env.ctx, m))
			}
			env.converge(name)
			for ordinal := range 2 {
				pod := env.runPod(resources.ShardName(name, ordinal), "a", "10.0.0."+strconv.Itoa(ordinal+1))
				env.answer(pod, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
			}
			env.converge(name)
			before := env.writes.Load()
			for range 5 {
				env.reconcile(name)
			}
			if n := env.writes.Load() - before; n != 0 {
				t.Errorf("%d writes in five reconciles in steady state, want none", n)
			}
		})
	}
}

func TestDriftIsCorrected(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	for name, c := range map[string]struct {
		object    client.Object
		name      string
		edit      func(client.Object)
		corrected func(client.Object) bool
	}{
		"a changed port": {&corev1.Service{}, "cache-0",
			func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].TargetPort = intstr.FromInt32(1) },
			func(o client.Object) bool {
				return o.(*corev1.Service).Spec.Ports[0].TargetPort == intstr.FromString("memcached")
			}},
		"a widened selector": {&corev1.Service{}, "cache",
			func(o client.Object) { o.(*corev1.Service).Spec.Selector = map[string]string{"a": "b"} },
			func(o client.Object) bool {
				return o.(*corev1.Service).Spec.Selector[v1alpha1.LabelInstance] == "cache"
			}},
		"no replicas": {&appsv1.ReplicaSet{}, "cache-0",
			func(o client.Object) { o.(*appsv1.ReplicaSet).Spec.Replicas = ptr.To[int32](0) },
			func(o client.Object) bool { return *o.(*appsv1.ReplicaSet).Spec.Replicas == 1 }},
		"an edited template": {&appsv1.ReplicaSet{}, "cache-0",
			func(o client.Object) { o.(*appsv1.ReplicaSet).Spec.Template.Spec.Containers[0].Image = "other" },
			func(o client.Object) bool {
				return o.(*appsv1.ReplicaSet).Spec.Template.Spec.Containers[0].Image == "docker.io/library/memcached:1.6.45"
			}},
		"a removed label": {&networkingv1.NetworkPolicy{}, "cache",
			func(o client.Object) { o.SetLabels(nil) },
			func(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue }},
		"an opened policy": {&networkingv1.NetworkPolicy{}, "cache",
			func(o client.Object) {
				o.(*networkingv1.NetworkPolicy).Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
			},
			func(o client.Object) bool { return len(o.(*networkingv1.NetworkPolicy).Spec.Ingress) == 4 }},
		"a loosened budget": {&policyv1.PodDisruptionBudget{}, "cache",
			func(o client.Object) {
				o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable = ptr.To(intstr.FromInt32(3))
			},
			func(o client.Object) bool { return o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable.IntVal == 1 }},
		"a removed owner": {&corev1.Service{}, "cache-0",
			func(o client.Object) { o.SetOwnerReferences(nil) },
			func(o client.Object) bool { return len(o.GetOwnerReferences()) == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			env.TB = t
			env.read(c.name, c.object)
			uid := c.object.GetUID()
			c.edit(c.object)
			env.must(admin.Update(env.ctx, c.object, client.FieldOwner("user")))
			env.converge("cache")
			env.read(c.name, c.object)
			if !c.corrected(c.object) || c.object.GetUID() != uid {
				t.Errorf("not corrected in place: %+v", c.object)
			}
		})
	}
}

// Kubernetes has an annotation for the same purpose, which the other Services can't have.
func TestSourceRangesAreThoseOfTheLoadBalancersOnly(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "{size: 1, service: {type: LoadBalancer, loadBalancerSourceRanges: [192.0.2.0/24]}}")
	env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
	for name, want := range map[string][]string{"cache-0-ext": {"192.0.2.0/24"}, "cache-0": nil, "cache": nil} {
		service := &corev1.Service{}
		env.read(name, service)
		if got := service.Spec.LoadBalancerSourceRanges; !slices.Equal(got, want) {
			t.Errorf("Service %s has the source ranges %q, want %q", name, got, want)
		}
		if port := service.Spec.Ports[0].NodePort; (port != 0) != (name == "cache-0-ext") {
			t.Errorf("Service %s has the node port %d", name, port)
		}
	}
	env.change("cache", func(m *v1alpha1.Memcached) {
		m.Spec.Service.Annotations = map[string]string{corev1.AnnotationLoadBalancerSourceRangesKey: "192.0.2.0/24"}
	})
	env.wantCondition(env.reconcile("cache"), v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonApplyRejected, corev1.AnnotationLoadBalancerSourceRangesKey)
}

func TestMemcachedIsDeletedWithoutFinalBackupWithItsNamespace(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "{size: 1, deletionPolicy: Backup, finalBackup: {store: {persistentVolumeClaim: {claimName: store}}}}")
	env.converge("cache")
	env.answer(env.runPod("cache-0", "a", "10.0.0.1"), agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
	m := env.converge("cache")
	env.recorded()
	env.must(admin.Delete(env.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.namespace}}))
	env.must(admin.Delete(env.ctx, m))
	_, err := env.reconciler.Reconcile(env.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
	if env.must(err); env.exists("cache", m) {
		t.Fatalf("not deleted: %+v", m.Status.Conditions)
	}
	env.wantEvent(env.recorded(), "deleting without a final backup: its namespace is being deleted")
}
func (env *testEnv) wantEvent(events []string, reason string) {
	env.Helper()
	for _, e := range events {
		if strings.Contains(e, reason) {
			return
		}
	}
	env.Errorf("no event %s in %q", reason, events)
}
