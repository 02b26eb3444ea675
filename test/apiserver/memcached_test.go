package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/index"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// testEnv is a namespace of one test, and the reconciler of Memcacheds in it with the operator's permissions.
type testEnv struct {
	*simtest.Env
	reconciler *memcached.Reconciler
}

var namespaces atomic.Int64

// newEnv returns an environment of a test, which runs beside others.
func newEnv(t *testing.T) *testEnv {
	t.Helper()
	t.Parallel()
	env := &testEnv{Env: simtest.NewEnv(t, admin, fmt.Sprintf("memcached-%d", namespaces.Add(1)))}
	env.Must(admin.Create(env.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace}}))
	config := rest.CopyConfig(server.Operator)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countWrites{next, &env.Writes} })
	direct, err := client.New(config, client.Options{Scheme: simtest.Scheme()})
	env.Must(err)
	env.reconciler = &memcached.Reconciler{Client: unindexed{direct, env.Namespace}, APIReader: direct, AgentClient: env.Agents, Recorder: env.Events, Clock: clock.RealClock{},
		Options: resources.Options{
			AgentImage:        "ghcr.io/memcached-operator/memcached-operator:v1.0.0",
			DefaultImage:      "docker.io/library/memcached:1.6.45",
			OperatorNamespace: "memcached-operator-system",
		}, DefaultImageUpdates: 1}
	env.Operator = env.reconciler
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

// The controller runs as in main, with caches, watches and only the rights of config/rbac.
func TestManagerWatchesWithTheOperatorsRights(t *testing.T) {
	env := newEnv(t)
	eventually := env.manage()
	env.Create("cache", "size: 2")
	eventually("both shards are created", func() bool { return env.Get("cache").Status.Size == 2 })

	var set appsv1.ReplicaSet
	env.Read("cache-1", &set)
	uid := set.UID
	env.Must(admin.Delete(env.Ctx, &set))
	eventually("a deleted ReplicaSet is recreated", func() bool { return env.Exists("cache-1", &set) && set.UID != uid })

	env.patch(&set, `{"metadata":{"labels":null}}`)
	eventually("an object that left the cache with its label is corrected", func() bool {
		env.Read("cache-1", &set)
		return set.Labels[v1beta1.LabelManagedBy] != ""
	})
	env.RunPod("cache-0", "a", "10.0.0.1")
	env.RunPod("cache-1", "a", "10.0.0.2")
	eventually("the pods' readiness is reported", func() bool { return env.Get("cache").Status.ReadyShards == 2 })
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "release"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1.LabelInstance: "cache"}}}}
	reports := func(reason string) func() bool {
		return func() bool {
			degraded := meta.FindStatusCondition(env.Get("cache").Status.Conditions, v1beta1.ConditionDegraded)
			return degraded != nil && degraded.Reason == reason
		}
	}
	env.Must(admin.Create(env.Ctx, budget))
	eventually("another budget that selects the shards is reported", reports(v1beta1.ReasonDisruptionBudgetConflict))
	budget.Spec.Selector.MatchLabels[v1beta1.LabelInstance] = "release"
	env.Must(admin.Update(env.Ctx, budget))
	eventually("it isn't when it selects others", reports(v1beta1.ReasonAsExpected))
	messages := func(reason string) map[string]bool {
		var list corev1.EventList
		env.Must(admin.List(env.Ctx, &list, client.InNamespace(env.Namespace)))
		all := map[string]bool{}
		for _, e := range list.Items {
			if e.Reason == reason {
				all[e.Message] = true
			}
		}
		return all
	}
	eventually("each shard has its event", func() bool { return len(messages(v1beta1.EventShardReady)) == 2 })
	env.patch(env.Get("cache"), `{"spec":{"size":0}}`)
	eventually("the shards are deleted", func() bool { return env.Get("cache").Status.Size == 0 })
	eventually("an event is recorded", func() bool { return len(messages(v1beta1.EventScaled)) > 0 })
}

// manage runs the controller in a manager until the test ends. It returns a function that waits until a condition is met.
func (env *testEnv) manage() (eventually func(what string, ok func() bool)) {
	env.Helper()
	mgr, err := ctrl.NewManager(server.Operator, ctrl.Options{Scheme: simtest.Scheme(), Cache: cache.Options(env.Namespace), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}})
	env.Must(err)
	r := &memcached.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), AgentClient: podAgents{env}, Recorder: mgr.GetEventRecorder("memcached-operator"), Clock: env.reconciler.Clock, Options: env.reconciler.Options}
	env.Must(index.Setup(env.Ctx, mgr.GetFieldIndexer()))
	env.Must(r.SetupWithManager(mgr))
	start(env, mgr)
	return func(what string, ok func() bool) {
		env.Helper()
		if err := wait.PollUntilContextTimeout(env.Ctx, 50*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) { return ok(), nil }); err != nil {
			env.Fatalf("%s: %v", what, err)
		}
	}
}

// patch changes an object that the manager may write at the same time.
func (env *testEnv) patch(o client.Object, patch string) {
	env.Helper()
	env.Must(admin.Patch(env.Ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// podAgents answers for every pod that it started empty.
type podAgents struct{ *testEnv }

func (a podAgents) Status(ctx context.Context, podIP string) (agentwire.Status, error) {
	var pods corev1.PodList
	if err := admin.List(ctx, &pods, client.InNamespace(a.Namespace)); err != nil {
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

// The cache omits what the operator doesn't read. Only its status and its finalizer are written.
func TestWritesKeepWhatTheCacheOmits(t *testing.T) {
	env := newEnv(t)
	eventually := env.manage()
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "cache", Finalizers: []string{"example.com/keep"},
		Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"example.com/large": strings.Repeat("x", 100<<10), v1beta1.AnnotationRetry: strings.Repeat("x", 2*1024)}}}
	m.Spec.DeletionPolicy = v1beta1.DeletionBackup
	m.Spec.Backup.Final = &v1beta1.FinalBackup{Store: v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: "store"}}}
	env.Must(admin.Create(env.Ctx, m))
	eventually("the finalizer and the status are written", func() bool {
		got := env.Get("cache")
		return slices.Contains(got.Finalizers, v1beta1.FinalizerFinalBackup) && got.Status.Size == 1
	})
	got := env.Get("cache")
	if !slices.Contains(got.Finalizers, "example.com/keep") || got.Labels["team"] != "shop" || len(got.Annotations["example.com/large"]) != 100<<10 ||
		len(got.Annotations[v1beta1.AnnotationRetry]) != 2*1024 || got.Generation != m.Generation {
		t.Errorf("finalizers %q, labels %q, %d annotations, generation %d", got.Finalizers, got.Labels, len(got.Annotations), got.Generation)
	}
	service := &corev1.Service{}
	env.Read("cache-0", service)
	service.Annotations = map[string]string{"example.com/theirs": "x"}
	env.Must(admin.Update(env.Ctx, service))
	service.Spec.Selector[v1beta1.LabelInstance] = "other"
	env.Must(admin.Update(env.Ctx, service))
	eventually("the Service is corrected", func() bool {
		env.Read("cache-0", service)
		return service.Spec.Selector[v1beta1.LabelInstance] == "cache"
	})
	if service.Annotations["example.com/theirs"] != "x" {
		t.Errorf("annotations %q", service.Annotations)
	}
	env.patch(got, `{"metadata":{"finalizers":null}}`) // nothing waits for a backup
}

func TestDeletedNamespaceGetsNoWrites(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 1")
	env.Converge("cache")
	env.Recorded()
	env.Must(admin.Delete(env.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace}}))
	env.Must(admin.Delete(env.Ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "cache-0"}}))
	before := env.Get("cache")
	m := env.Reconcile("cache") // no error, so no retries
	if diff := cmp.Diff(before.Status, m.Status); diff != "" {
		t.Errorf("the status was written:\n%s", diff)
	}
	if events := env.Recorded(); len(events) > 0 {
		t.Errorf("events %q: the API server rejects them", events)
	}
}

func TestSteadyStateNeedsNoWrites(t *testing.T) {
	everyField, err := os.ReadFile("../../controllers/memcached/testdata/every_field.yaml")
	must(t, err)
	for name, spec := range map[string]string{"cache": "size: 3", "sessions": string(everyField)} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			m := env.Create(name, spec)
			if m.Spec.Backup.Bootstrap != nil { // which has finished
				m.Status.Bootstrap = &v1beta1.BootstrapStatus{RestoreName: name + "-bootstrap", Phase: v1beta1.TransferComplete}
				env.Must(admin.Status().Update(env.Ctx, m))
			}
			env.Converge(name)
			for ordinal := range 2 {
				pod := env.RunPod(resources.ShardName(name, ordinal), "a", "10.0.0."+strconv.Itoa(ordinal+1))
				env.Answer(pod, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
			}
			env.patch(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: name}}, `{"spec":{"maxUnavailable":null,"minAvailable":1}}`)
			env.Converge(name)
			before := env.Writes.Load()
			for range 5 {
				env.Reconcile(name)
			}
			if n := env.Writes.Load() - before; n != 0 {
				t.Errorf("%d writes in five reconciles in steady state, want none", n)
			}
		})
	}
}

// Kubernetes has an annotation for the same purpose, which the other Services can't have.
func TestSourceRangesAreThoseOfTheLoadBalancersOnly(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, access: {external: {mode: LoadBalancer, sourceRanges: [192.0.2.0/24]}}}")
	env.WantCondition(env.Converge("cache"), v1beta1.ConditionDegraded, metav1.ConditionFalse, v1beta1.ReasonAsExpected)
	for name, want := range map[string][]string{"cache-0-ext": {"192.0.2.0/24"}, "cache-0": nil, "cache": nil} {
		service := &corev1.Service{}
		env.Read(name, service)
		if got := service.Spec.LoadBalancerSourceRanges; !slices.Equal(got, want) {
			t.Errorf("Service %s has the source ranges %q, want %q", name, got, want)
		}
		if port := service.Spec.Ports[0].NodePort; (port != 0) != (name == "cache-0-ext") {
			t.Errorf("Service %s has the node port %d", name, port)
		}
	}
	env.Change("cache", func(m *v1beta1.Memcached) {
		m.Spec.Access.ServiceMetadata.Annotations = map[string]string{corev1.AnnotationLoadBalancerSourceRangesKey: "192.0.2.0/24"}
	})
	env.WantCondition(env.Reconcile("cache"), v1beta1.ConditionDegraded, metav1.ConditionTrue, v1beta1.ReasonApplyRejected, corev1.AnnotationLoadBalancerSourceRangesKey)
}

// externalService returns the Service of the load balancer of shard 0, after the operator has converged.
func (env *testEnv) externalService(change func(*v1beta1.ExternalSpec)) *corev1.Service {
	env.Helper()
	if change != nil {
		env.Change("cache", func(m *v1beta1.Memcached) { change(&m.Spec.Access.External) })
	}
	env.WantCondition(env.Converge("cache"), v1beta1.ConditionDegraded, metav1.ConditionFalse, v1beta1.ReasonAsExpected)
	service := &corev1.Service{}
	env.Read("cache-0-ext", service)
	return service
}

// Kubernetes keeps the ports when a Service allocates none from now on.
func TestNodePortsCloseAndOpenWithTheSpec(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, access: {external: {mode: LoadBalancer}}}")
	first := env.externalService(nil)
	for name, c := range map[string]struct {
		allocate *bool
		open     bool
	}{"closed": {new(false), false}, "the default": {nil, true}} {
		service := env.externalService(func(s *v1beta1.ExternalSpec) { s.AllocateNodePorts = c.allocate })
		if port := service.Spec.Ports[0].NodePort; (port != 0) != c.open || service.UID != first.UID {
			t.Errorf("%s: node port %d, recreated: %t", name, port, service.UID != first.UID)
		}
	}
	service := env.externalService(func(s *v1beta1.ExternalSpec) { s.AllocateNodePorts = new(false) })
	before := env.Writes.Load()
	if env.Reconcile("cache"); env.Writes.Load() != before || service.Spec.Ports[0].NodePort != 0 {
		t.Errorf("%d writes for a Service that is up to date", env.Writes.Load()-before)
	}
}

// Kubernetes rejects another class of an existing Service.
func TestAnotherLoadBalancerClassRecreatesTheService(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, access: {external: {mode: LoadBalancer}}}")
	uids := map[types.UID]bool{env.externalService(nil).UID: true}
	for _, class := range []string{"example.com/a", "example.com/b", ""} {
		service := env.externalService(func(s *v1beta1.ExternalSpec) { s.LoadBalancerClass = class })
		if got := ptr.Deref(service.Spec.LoadBalancerClass, ""); got != class || uids[service.UID] {
			t.Errorf("class %q, recreated: %t; want %q", got, !uids[service.UID], class)
		}
		uids[service.UID] = true
	}
}

// A webhook of a cloud sets it.
func TestLoadBalancerClassOfAnotherOwnerIsKept(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, access: {external: {mode: LoadBalancer}}}")
	service := env.externalService(nil)
	env.Must(admin.Delete(env.Ctx, service))
	service.ObjectMeta = metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name, Labels: service.Labels, OwnerReferences: service.OwnerReferences}
	service.Spec.LoadBalancerClass, service.Spec.ClusterIP, service.Spec.ClusterIPs = new("example.com/cloud"), "", nil
	env.Must(admin.Create(env.Ctx, service))
	if got := env.externalService(nil); got.UID != service.UID || ptr.Deref(got.Spec.LoadBalancerClass, "") != "example.com/cloud" {
		t.Errorf("class %v, recreated: %t", got.Spec.LoadBalancerClass, got.UID != service.UID)
	}
}

// The API server of the tests has two stacks, with IPv4 first.
func TestServicesHaveTheIPFamiliesOfTheSpec(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, access: {external: {mode: LoadBalancer}, discovery: {mode: ElastiCache}}}")
	names := []string{"cache", "cache-0", "cache-0-ext", "cache-discovery"}
	families := func() (all []string) {
		for _, name := range names {
			service := &corev1.Service{}
			env.Read(name, service)
			all = append(all, fmt.Sprint(service.Spec.IPFamilies))
		}
		return all
	}
	for _, c := range []struct{ access, want string }{
		{"{}", "[IPv4]"}, {"{ipFamilyPolicy: RequireDualStack}", "[IPv4 IPv6]"}, {"{ipFamilyPolicy: SingleStack}", "[IPv4]"},
		{"{ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv4, IPv6]}", "[IPv4 IPv6]"}, {"{ipFamilyPolicy: SingleStack, ipFamilies: [IPv4]}", "[IPv4]"},
		{"{ipFamilyPolicy: PreferDualStack}", "[IPv4 IPv6]"}, {"{}", "[IPv4]"},
	} {
		env.Change("cache", func(m *v1beta1.Memcached) {
			var access v1beta1.MemcachedAccess
			env.Must(yaml.Unmarshal([]byte(c.access), &access))
			m.Spec.Access.IPFamilyPolicy, m.Spec.Access.IPFamilies = access.IPFamilyPolicy, access.IPFamilies
		})
		env.WantCondition(env.Converge("cache"), v1beta1.ConditionDegraded, metav1.ConditionFalse, v1beta1.ReasonAsExpected)
		if got := families(); !slices.Equal(got, slices.Repeat([]string{c.want}, len(names))) {
			t.Errorf("%s: %q, want %s", c.access, got, c.want)
		}
	}
	env.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Access.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} })
	env.WantCondition(env.Converge("cache"), v1beta1.ConditionDegraded, metav1.ConditionTrue, v1beta1.ReasonApplyRejected, "begins with IPv6, and the Service", "write IPv4 first")
	for _, name := range names {
		env.Must(admin.Delete(env.Ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: name}}))
	}
	env.WantCondition(env.Converge("cache"), v1beta1.ConditionDegraded, metav1.ConditionFalse, v1beta1.ReasonAsExpected)
	if got := families(); !slices.Equal(got, slices.Repeat([]string{"[IPv6]"}, len(names))) {
		t.Errorf("after the Services were deleted: %q", got)
	}
}

func TestMemcachedIsDeletedWithoutFinalBackupWithItsNamespace(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, deletionPolicy: Backup, backup: {final: {store: {persistentVolumeClaim: {claimName: store}}}}}")
	env.Converge("cache")
	env.Answer(env.RunPod("cache-0", "a", "10.0.0.1"), agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
	m := env.Converge("cache")
	env.Recorded()
	env.Must(admin.Delete(env.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace}}))
	env.Must(admin.Delete(env.Ctx, m))
	_, err := env.reconciler.Reconcile(env.Ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
	if env.Must(err); env.Exists("cache", m) {
		t.Fatalf("not deleted: %+v", m.Status.Conditions)
	}
	env.WantEvent(env.Recorded(), "deleting without a final backup: its namespace is being deleted")
}
