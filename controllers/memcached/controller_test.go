package memcached

import (
	"context"
	_ "embed"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// everyField is a spec in which every field is set.
//
//go:embed testdata/every_field.yaml
var everyField string

// alternatives are the fields that everyField doesn't set, because each excludes another one.
var alternatives = []string{"backup.bootstrap.snapshot", "backup.final.store.s3"}

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
		if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1beta1.MemcachedSpec]().PkgPath() {
			return
		}
		values, _ := value.(map[string]any)
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			fieldPath := strings.TrimPrefix(path+"."+name, ".")
			fieldValue, isSet := values[name]
			switch {
			case name == "": // inline
				check(path, field.Type, value)
			case isSet:
				check(fieldPath, field.Type, fieldValue)
			case !slices.Contains(alternatives, fieldPath):
				t.Errorf("%s is not set", fieldPath)
			}
		}
	}
	check("", reflect.TypeFor[v1beta1.MemcachedSpec](), spec)
}

func TestEveryObjectIsCreatedAndOwned(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 3")
	m := env.Converge("cache")
	for _, key := range keysOf("cache", 3) {
		o := resources.NewObject(key.Kind)
		env.Read(key.Name, o)
		if !metav1.IsControlledBy(o, m) {
			t.Errorf("%s is not controlled by the Memcached", key)
		}
	}
	env.WantCondition(m, v1beta1.ConditionAvailable, metav1.ConditionFalse, v1beta1.ReasonShardsNotReady, "cache-0, cache-1, cache-2")
	env.WantCondition(m, v1beta1.ConditionProgressing, metav1.ConditionTrue, v1beta1.ReasonShardsStarting)
	env.WantCondition(m, v1beta1.ConditionDegraded, metav1.ConditionFalse, v1beta1.ReasonAsExpected)
	if m.Status.Phase != v1beta1.PhaseProgressing || m.Status.ReadyShards != 0 || m.Status.Size != 3 {
		t.Errorf("status %+v", m.Status)
	}
}

// The pods start one after another, each in several steps, with a reconcile after each step.
func TestStatusReportsReadyShards(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 2")
	env.Converge("cache")
	if m := env.Get("cache"); m.Status.Size != 2 || len(m.Status.Servers) != 2 {
		t.Errorf("after the first write the status has %d shards and the servers %v", m.Status.Size, m.Status.Servers)
	}
	var pods []*corev1.Pod
	for ordinal := range 2 {
		pods = append(pods, env.CreatePod(resources.ShardName("cache", ordinal), "a"))
		env.Reconcile("cache")
	}
	for i, pod := range pods {
		ip := "10.0.0." + strconv.Itoa(i+1)
		env.SetPod(pod, ip, false, "containerd://a")
		env.Reconcile("cache")
		env.SetPod(pod, ip, true, "containerd://a")
		env.Answer(pod, agentwire.Start{Result: agentwire.StartCold, At: env.clock.Now()}, "1.6.45")
		env.Reconcile("cache")
	}
	m := env.Converge("cache")
	// the two Secrets, and the status when the objects are created, and when each shard has a pod and is ready
	if want := len(keysOf("cache", 2)) + 2 + 1 + 2*2; int(env.Writes.Load()) != want {
		t.Errorf("%d writes, want %d", env.Writes.Load(), want)
	}
	env.WantCondition(m, v1beta1.ConditionAvailable, metav1.ConditionTrue, v1beta1.ReasonAllShardsReady)
	env.WantCondition(m, v1beta1.ConditionProgressing, metav1.ConditionFalse, v1beta1.ReasonUpToDate)
	server := func(shard string) string { return shard + "." + env.Namespace + ".svc.cluster.local:11211" }
	if s := m.Status; s.Phase != v1beta1.PhaseRunning || s.ReadyShards != 2 || s.Version != "1.6.45" ||
		!slices.Equal(s.Nodes, []string{"cache-0-a", "cache-1-a"}) || !slices.Equal(s.Servers, []string{server("cache-0"), server("cache-1")}) {
		t.Errorf("status %+v", s)
	}
	for _, shard := range m.Status.Shards {
		if !shard.Ready || !shard.UpToDate || shard.StartResult != v1beta1.StartCold || shard.Version != "1.6.45" || shard.Revision == "" || shard.NodeName != "node1" {
			t.Errorf("shard %+v", shard)
		}
	}
	events := env.Recorded()
	for ordinal := range 2 {
		env.WantEvent(events, "shard "+resources.ShardName("cache", ordinal)+" is ready in pod ")
	}
	if slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, v1beta1.EventShardStartedEmpty) }) {
		t.Errorf("a first start is no loss: %q", events)
	}
	// Of events that differ only in their message, Kubernetes keeps the first.
	if got := env.related[v1beta1.EventShardReady]; !slices.Equal(got, []string{"cache-0-a", "cache-1-a"}) {
		t.Errorf("the events are related to the pods %q", got)
	}
}

func TestMemcachedIsDeletedAfterItsFinalBackup(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, deletionPolicy: Backup, backup: {final: {store: {persistentVolumeClaim: {claimName: store}}}}}")
	env.Converge("cache")
	env.run("cache-0", "10.0.0.1")
	m := env.Converge("cache")
	env.Must(env.Admin.Delete(env.Ctx, m))
	env.WantCondition(env.Converge("cache"), v1beta1.ConditionProgressing, metav1.ConditionTrue, v1beta1.ReasonBackingUp)
	backup := &v1beta1.MemcachedBackup{}
	env.Read(observation.FinalBackupName(m), backup)
	failed := backup.UID
	backup.Status.Phase, backup.Status.CompletionTime = v1beta1.TransferFailed, &metav1.Time{Time: env.clock.Now().Add(-time.Minute)}
	env.Must(env.Admin.Status().Update(env.Ctx, backup))
	env.WantCondition(env.Converge("cache"), v1beta1.ConditionDegraded, metav1.ConditionTrue, v1beta1.ReasonFinalBackupLate)
	if env.Read(observation.FinalBackupName(m), backup); backup.UID == failed {
		t.Fatal("the backup that failed isn't repeated")
	}
	env.WantEvent(env.Recorded(), "Warning FinalBackupLate MemcachedBackup "+backup.Name+" failed")
	backup.Status.Phase, backup.Status.Snapshot = v1beta1.TransferComplete, &v1beta1.SnapshotStatus{Path: "p", SnapshotTime: metav1.NewTime(env.clock.Now()), Items: 2000}
	env.Must(env.Admin.Status().Update(env.Ctx, backup))
	_, err := env.reconciler.Reconcile(env.Ctx, env.Request("cache"))
	if env.Must(err); env.Exists("cache", m) || !env.Exists(backup.Name, backup) {
		t.Errorf("not deleted: %+v", m.Status.Conditions)
	}
	env.WantEvent(env.Recorded(), "Normal FinalBackup MemcachedBackup "+backup.Name)
}

func TestReasonOfARejectedFinalBackupIsReportedUntilTheEnd(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, deletionPolicy: Backup, backup: {final: {store: {persistentVolumeClaim: {claimName: store}}}}}")
	env.Converge("cache")
	env.run("cache-0", "10.0.0.1")
	m := env.Converge("cache")
	denied := apierrors.NewInvalid(schema.GroupKind{Kind: "MemcachedBackup"}, "cache-final-00000001", field.ErrorList{field.Forbidden(field.NewPath("spec"), "a policy denies it")})
	env.reconciler.Client = &failsToCreate[*v1beta1.MemcachedBackup]{Client: env.reconciler.Client, err: denied}
	env.Must(env.Admin.Delete(env.Ctx, m))
	env.Converge("cache")
	env.skipAnHour()
	m = env.Converge("cache")
	env.WantCondition(m, v1beta1.ConditionDegraded, metav1.ConditionTrue, v1beta1.ReasonFinalBackupFailed, "a policy denies it", "the Memcached stays")
	env.WantCondition(m, v1beta1.ConditionProgressing, metav1.ConditionTrue, v1beta1.ReasonApplyRejected, "a policy denies it")
	env.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Backup.Final.OnFailure = v1beta1.FinalBackupDelete })
	_, err := env.reconciler.Reconcile(env.Ctx, env.Request("cache"))
	if env.Must(err); env.Exists("cache", m) {
		t.Errorf("not deleted: %+v", m.Status.Conditions)
	}
	env.WantEvent(env.Recorded(), `Warning FinalBackup deleting without a final backup: the API server rejected MemcachedBackup cache-final-00000001: MemcachedBackup "cache-final-00000001" is invalid: spec: Forbidden: a policy denies it`)
}

// withoutRestores is a cache that lags behind.
type withoutRestores struct{ client.Client }

func (c withoutRestores) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*v1beta1.MemcachedRestoreList); ok {
		return nil
	}
	return c.Client.List(ctx, list, options...)
}

func TestReplacementWaitsForARestoreThatTheCacheLacks(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, updateStrategy: {handover: {mode: Disabled}}}")
	env.Converge("cache")
	env.run("cache-0", "10.0.0.1")
	env.Converge("cache")
	restore := &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "fill"},
		Spec: v1beta1.MemcachedRestoreSpec{MemcachedRef: v1beta1.MemcachedReference{Name: "cache"}, BackupRef: &v1beta1.BackupReference{Name: "nightly"}}}
	env.Must(env.Admin.Create(env.Ctx, restore))
	replicas := func(phase v1beta1.TransferPhase) int32 {
		restore.Status.Phase = phase
		env.Must(env.Admin.Status().Update(env.Ctx, restore))
		env.Converge("cache")
		set := &appsv1.ReplicaSet{}
		env.Read("cache-0", set)
		return *set.Spec.Replicas
	}
	env.reconciler.Client = withoutRestores{env.reconciler.Client}
	env.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Memory = ptr.To(resource.MustParse("80Mi")) })
	if n := replicas(v1beta1.TransferRunning); n != 1 || env.Get("cache").Status.Update == nil {
		t.Errorf("during the restore, the shard has %d pods; the update is %+v", n, env.Get("cache").Status.Update)
	}
	if n := replicas(v1beta1.TransferComplete); n != 2 {
		t.Errorf("after the restore, the shard has %d pods", n)
	}
}

// An operator that has just started may read an older spec.
func TestSpecThatIsNotTheLatestDeletesNoShard(t *testing.T) {
	env := newEnv(t)
	former := env.Create("cache", "size: 1")
	env.Change("cache", func(m *v1beta1.Memcached) { *m.Spec.Size = 2 })
	env.Converge("cache")
	env.reconciler.memories.forget(client.ObjectKeyFromObject(former))
	env.reconciler.Client = &staleClient{Client: env.reconciler.Client, memcached: former}
	if env.Reconcile("cache"); !env.Exists("cache-1", &appsv1.ReplicaSet{}) {
		t.Error("the second shard was deleted")
	}
}

func TestCacheOfObjectsDoesNotGrow(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 3")
	m := env.Converge("cache")
	name := client.ObjectKeyFromObject(m)
	if n, want := len(env.reconciler.memories.of[name].UpToDate), len(keysOf("cache", 3)); n != want {
		t.Fatalf("%d objects, want %d", n, want)
	}
	env.Change("cache", func(m *v1beta1.Memcached) { *m.Spec.Size = 1 })
	env.Converge("cache")
	if n, want := len(env.reconciler.memories.of[name].UpToDate), len(keysOf("cache", 1)); n != want {
		t.Errorf("%d objects after scaling in, want %d", n, want)
	}
	env.Must(env.Admin.Delete(env.Ctx, m))
	_, err := env.reconciler.Reconcile(env.Ctx, ctrl.Request{NamespacedName: name})
	env.Must(err)
	if memory := env.reconciler.memories.of[name]; memory.UpToDate != nil || memory.replaced.version != "" {
		t.Errorf("the deleted Memcached has the memory %+v", memory)
	}
}

// The API server would reject a status that is computed from a version that the operator has
// replaced.
func TestReconcileWaitsUntilTheCacheContainsTheLastWrite(t *testing.T) {
	env := newEnv(t)
	old := env.Create("cache", "size: 1")
	env.Reconcile("cache")
	stale := &staleClient{Client: env.reconciler.Client, memcached: old}
	env.reconciler.Client = stale
	before := env.Writes.Load()
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(old)}
	result, err := env.reconciler.Reconcile(env.Ctx, request)
	if env.Must(err); env.Writes.Load() != before || result.RequeueAfter != apiserver.StaleRequeue || stale.lists != 0 {
		t.Errorf("%d writes and %d lists, requeue after %s", env.Writes.Load()-before, stale.lists, result.RequeueAfter)
	}
	env.clock.SetTime(env.clock.Now().Add(5 * time.Second)) // an etcd that was restored keeps the old version
	if _, err = env.reconciler.Reconcile(env.Ctx, request); err != nil || stale.lists == 0 {
		t.Errorf("five seconds later: %d lists, error %v", stale.lists, err)
	}
}

// staleClient reads an old version of a Memcached.
type staleClient struct {
	client.Client
	memcached *v1beta1.Memcached
	lists     int
}

// Get implements client.Reader.
func (s *staleClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if m, ok := o.(*v1beta1.Memcached); ok {
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

func TestDriftIsCorrected(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 1")
	env.Converge("cache")
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
				return o.(*corev1.Service).Spec.Selector[v1beta1.LabelInstance] == "cache"
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
			func(o client.Object) bool { return o.GetLabels()[v1beta1.LabelManagedBy] == v1beta1.ManagedByValue }},
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
		"a budget with another field": {&policyv1.PodDisruptionBudget{}, "cache",
			func(o client.Object) {
				spec := &o.(*policyv1.PodDisruptionBudget).Spec
				spec.MinAvailable, spec.MaxUnavailable = ptr.To(intstr.FromInt32(1)), nil
			},
			func(o client.Object) bool {
				spec := &o.(*policyv1.PodDisruptionBudget).Spec
				return spec.MinAvailable == nil && ptr.Deref(spec.MaxUnavailable, intstr.IntOrString{}).IntVal == 1
			}},
		"a removed owner": {&corev1.Service{}, "cache-0",
			func(o client.Object) { o.SetOwnerReferences(nil) },
			func(o client.Object) bool { return len(o.GetOwnerReferences()) == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			env.TB = t
			env.Read(c.name, c.object)
			uid := c.object.GetUID()
			c.edit(c.object)
			env.Must(env.Admin.Update(env.Ctx, c.object, client.FieldOwner("user")))
			env.Converge("cache")
			env.Read(c.name, c.object)
			if !c.corrected(c.object) || c.object.GetUID() != uid {
				t.Errorf("not corrected in place: %+v", c.object)
			}
		})
	}
}
