package simtest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Env is what a test does in one namespace: what a user, the ReplicaSet controller and the kubelet do, and reconciles of the
// operator one at a time. Whatever goes wrong ends the test.
type Env struct {
	testing.TB
	Ctx       context.Context
	Admin     client.Client
	Namespace string
	Operator  reconcile.Reconciler
	Agents    Agents
	Events    *events.FakeRecorder
	// Writes is the number of the operator's writes, which it counts itself.
	Writes atomic.Int64
}

// NewEnv returns an environment without an operator.
func NewEnv(t testing.TB, admin client.Client, namespace string) *Env {
	return &Env{TB: t, Ctx: t.Context(), Admin: admin, Namespace: namespace, Agents: Agents{}, Events: events.NewFakeRecorder(100)}
}

// Agents are the agents' answers by pod IP.
type Agents map[string]agentwire.Status

// Status returns the answer of an agent.
func (a Agents) Status(_ context.Context, podIP string) (agentwire.Status, error) {
	status, ok := a[podIP]
	if !ok {
		return agentwire.Status{}, fmt.Errorf("no answer from %s", podIP)
	}
	return status, nil
}

// Must ends the test unless there is no error.
func (env *Env) Must(err error) {
	env.Helper()
	if err != nil {
		env.Fatal(err)
	}
}

// Create creates a Memcached with a spec in YAML.
func (env *Env) Create(name, spec string) *v1beta1.Memcached {
	env.Helper()
	m, err := env.TryCreate(name, spec)
	env.Must(err)
	return m
}

// TryCreate creates a Memcached, which the API server may reject.
func (env *Env) TryCreate(name, spec string) (*v1beta1.Memcached, error) {
	env.Helper()
	if err := env.Admin.Create(env.Ctx, env.Object("Memcached", name, spec)); err != nil {
		return nil, err
	}
	return env.Get(name), nil
}

// Object returns an object of the namespace with a spec in YAML.
func (env *Env) Object(kind, name, spec string) *unstructured.Unstructured {
	env.Helper()
	raw, err := yaml.YAMLToJSON([]byte(spec))
	env.Must(err)
	fields := map[string]any{}
	env.Must(json.Unmarshal(raw, &fields)) // with integers
	u := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
	u.SetNamespace(env.Namespace)
	u.SetName(name)
	return u
}

// Get reads a Memcached.
func (env *Env) Get(name string) *v1beta1.Memcached {
	env.Helper()
	m := &v1beta1.Memcached{}
	env.Read(name, m)
	return m
}

// Read reads an object.
func (env *Env) Read(name string, o client.Object) {
	env.Helper()
	env.Must(env.Admin.Get(env.Ctx, types.NamespacedName{Namespace: env.Namespace, Name: name}, o))
}

// Exists reads an object, and reports whether it exists.
func (env *Env) Exists(name string, o client.Object) bool {
	env.Helper()
	err := env.Admin.Get(env.Ctx, types.NamespacedName{Namespace: env.Namespace, Name: name}, o)
	env.Must(client.IgnoreNotFound(err))
	return err == nil
}

// Change edits a Memcached as a user does.
func (env *Env) Change(name string, edit func(*v1beta1.Memcached)) {
	env.Helper()
	m := env.Get(name)
	edit(m)
	env.Must(env.Admin.Update(env.Ctx, m))
}

// Request is that of a reconcile.
func (env *Env) Request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: env.Namespace, Name: name}}
}

// Reconcile runs one reconcile and returns the Memcached after it.
func (env *Env) Reconcile(name string) *v1beta1.Memcached {
	env.Helper()
	_, err := env.Operator.Reconcile(env.Ctx, env.Request(name))
	env.Must(err)
	return env.Get(name)
}

// Converge reconciles until the operator writes nothing more.
func (env *Env) Converge(name string) *v1beta1.Memcached {
	env.Helper()
	for range 10 {
		before := env.Writes.Load()
		if m := env.Reconcile(name); env.Writes.Load() == before {
			return m
		}
	}
	env.Fatal("the operator still writes after ten reconciles")
	return nil
}

// Recorded returns the events since the last call.
func (env *Env) Recorded() []string {
	var all []string
	for {
		select {
		case e := <-env.Events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// WantEvent fails the test unless an event contains a text.
func (env *Env) WantEvent(events []string, reason string) {
	env.Helper()
	for _, e := range events {
		if strings.Contains(e, reason) {
			return
		}
	}
	env.Errorf("no event %s in %q", reason, events)
}

// WantCondition fails the test unless a condition of the latest generation is like that, with these words in its message.
func (env *Env) WantCondition(m *v1beta1.Memcached, kind string, status metav1.ConditionStatus, reason string, words ...string) {
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

// RunPod creates a ready pod as the ReplicaSet controller and the kubelet do.
func (env *Env) RunPod(shard, suffix, ip string) *corev1.Pod {
	env.Helper()
	pod := env.CreatePod(shard, suffix)
	env.SetPod(pod, ip, true, "containerd://"+suffix)
	return pod
}

// CreatePod creates a shard's pod as the ReplicaSet controller does.
func (env *Env) CreatePod(shard, suffix string) *corev1.Pod {
	env.Helper()
	var set appsv1.ReplicaSet
	env.Read(shard, &set)
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: set.Spec.Template.Spec}
	pod.Name, pod.Namespace = shard+"-"+suffix, env.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	pod.Spec.NodeName = "node1"
	env.Must(env.Admin.Create(env.Ctx, pod))
	return pod
}

// SetPod writes the status of a pod that runs.
func (env *Env) SetPod(pod *corev1.Pod, ip string, ready bool, container string) {
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
	env.Must(env.Admin.Status().Update(env.Ctx, pod))
}

// Answer sets the answer of a pod's agent.
func (env *Env) Answer(pod *corev1.Pod, start agentwire.Start, version string) {
	env.Agents[pod.Status.PodIP] = agentwire.Status{
		Phase: agentwire.PhaseServing, PodUID: string(pod.UID), Version: version, Start: start,
		Restart: pod.Annotations[v1beta1.AnnotationRestart],
	}
}
