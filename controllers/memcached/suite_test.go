package memcached

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// testEnv is one test's namespace and the operator in it.
type testEnv struct {
	testing.TB
	ctx        context.Context
	admin      *simtest.Server
	namespace  string
	reconciler *Reconciler
	agents     fakeAgents
	events     *events.FakeRecorder
	// related has the pods to which events are related, by reason.
	related map[string][]string
	// writes is the number of the operator's writes.
	writes int
	// readableSecret is the only Secret that the operator may read and update: its role lets it create Secrets.
	readableSecret string
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

// newEnv returns an environment of a test, with an API server in memory. What the operator reads is trimmed as by its cache.
func newEnv(t testing.TB) *testEnv {
	t.Helper()
	uids := 0
	env := &testEnv{TB: t, ctx: t.Context(), namespace: simtest.InMemory, agents: fakeAgents{}, events: events.NewFakeRecorder(100), related: map[string][]string{}}
	env.admin = simtest.NewServer(time.Now, func() types.UID {
		uids++
		return types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", uids))
	})
	direct := simtest.Client{Client: operatorReads{env.admin, env}, Write: env.write}
	env.reconciler = &Reconciler{Client: cachedClient{direct}, APIReader: direct, AgentClient: env.agents, Recorder: podRecorder{env.events, env.related}, Clock: clock.RealClock{}, Options: resources.Options{
		AgentImage:        "ghcr.io/memcached-operator/memcached-operator:v1.0.0",
		DefaultImage:      "docker.io/library/memcached:1.6.45",
		OperatorNamespace: "memcached-operator-system",
	}, DefaultImageUpdates: 1}
	return env
}

// podRecorder records which pods the events are related to.
type podRecorder struct {
	events.EventRecorder
	pods map[string][]string
}

func (r podRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	if pod, ok := related.(*corev1.ObjectReference); ok {
		r.pods[reason] = append(r.pods[reason], pod.Name)
	}
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
}

// write makes a write of the operator.
func (env *testEnv) write(verb string, k simtest.Kind, key client.ObjectKey, do func() error) error {
	if verb == "update" {
		if err := env.allows(k, key.Name); err != nil {
			return err
		}
	}
	env.writes++
	return do()
}

// allows returns why the operator can't read or update an object.
func (env *testEnv) allows(k simtest.Kind, name string) error {
	if k == simtest.KindSecret && name != env.readableSecret {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, errors.New("the role has no rule for it"))
	}
	return nil
}

// operatorReads is what the operator reads with.
type operatorReads struct {
	client.Client
	env *testEnv
}

// Get implements client.Reader.
func (r operatorReads) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := r.env.allows(simtest.KindOf(o), key.Name); err != nil {
		return err
	}
	return r.Client.Get(ctx, key, o, options...)
}

// cachedClient reads what the cache would contain, so that tests fail when it lacks a field that the operator needs.
type cachedClient struct{ client.Client }

func trim(o runtime.Object) error {
	_, err := cache.Transform(o)
	return err
}

// Get implements client.Reader.
func (c cachedClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, o, options...); err != nil {
		return err
	}
	return trim(o)
}

// List implements client.Reader.
func (c cachedClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.Client.List(ctx, list, options...); err != nil {
		return err
	}
	return meta.EachListItem(list, trim)
}

func (env *testEnv) must(err error) {
	env.Helper()
	if err != nil {
		env.Fatal(err)
	}
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
	raw, err := yaml.YAMLToJSON([]byte(spec))
	env.must(err)
	o := map[string]any{}
	env.must(json.Unmarshal(raw, &o)) // with integers
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Memcached"))
	u.SetName(name)
	u.SetNamespace(env.namespace)
	u.Object["spec"] = o
	if err := env.admin.Create(env.ctx, u); err != nil {
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
	env.must(env.admin.Get(env.ctx, types.NamespacedName{Namespace: env.namespace, Name: name}, o))
}

func (env *testEnv) exists(name string, o client.Object) bool {
	env.Helper()
	err := env.admin.Get(env.ctx, types.NamespacedName{Namespace: env.namespace, Name: name}, o)
	env.must(client.IgnoreNotFound(err))
	return err == nil
}

// change edits a Memcached as a user does.
func (env *testEnv) change(name string, edit func(*v1alpha1.Memcached)) {
	env.Helper()
	m := env.get(name)
	edit(m)
	env.must(env.admin.Update(env.ctx, m))
}

func (env *testEnv) request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: env.namespace, Name: name}}
}

// reconcile runs one reconcile and returns the Memcached after it.
func (env *testEnv) reconcile(name string) *v1alpha1.Memcached {
	env.Helper()
	_, err := env.reconciler.Reconcile(env.ctx, env.request(name))
	env.must(err)
	return env.get(name)
}

// converge reconciles until the operator writes nothing more.
func (env *testEnv) converge(name string) *v1alpha1.Memcached {
	env.Helper()
	for range 10 {
		before := env.writes
		if m := env.reconcile(name); env.writes == before {
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

func (env *testEnv) wantEvent(events []string, reason string) {
	env.Helper()
	for _, e := range events {
		if strings.Contains(e, reason) {
			return
		}
	}
	env.Errorf("no event %s in %q", reason, events)
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

// skipAnHour sets the operator's clock ahead.
func (env *testEnv) skipAnHour() {
	env.reconciler.Clock = testclock.NewFakePassiveClock(env.reconciler.Clock.Now().Add(time.Hour))
}

// keysOf returns the keys of a Memcached of this size.
func keysOf(name string, size int32) []resources.Key {
	m := &v1alpha1.Memcached{}
	m.Name, m.Spec.Size = name, &size
	return resources.Keys(m)
}

// observe returns what the operator observes of a Memcached.
func (env *testEnv) observe(name string) *observation.Observation {
	env.Helper()
	obs, err := env.reconciler.observer().observe(env.ctx, env.get(name), observation.Memory{})
	env.must(err)
	return obs
}

// apply makes the writes of a plan, or fails the test if they fail in a way that a retry fixes
// or none does.
func (env *testEnv) apply(m *v1alpha1.Memcached, a plan.Actions) plan.Result {
	env.Helper()
	res := writer{env.reconciler.Client}.apply(env.ctx, m, a)
	if res.Retry() != nil || len(res.Rejections) > 0 {
		env.Errorf("failures %v, rejections %v", res.Failures, res.Rejections)
	}
	return res
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

// run creates a ready pod of a shard, whose agent reports an empty start.
func (env *testEnv) run(shard, ip string) *corev1.Pod {
	env.Helper()
	pod := env.runPod(shard, "a", ip)
	env.answer(pod, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
	return pod
}
