package cache

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// BenchmarkMemoryOfAThousandMemcacheds measures the memory of the objects of 1,000 Memcacheds of three shards: as the cache stores
// them, if no two objects share memory, and untrimmed (ADR 8).
func BenchmarkMemoryOfAThousandMemcacheds(b *testing.B) {
	const name = "m0000000"
	sent := objectsOf(b, name)
	// store returns the memory of the objects in MB after change was applied to each.
	store := func(change func(client.Object)) float64 {
		interned.values, interned.size = nil, 0
		before, stored := heap(), []client.Object(nil)
		for i := range 1000 {
			for _, raw := range sent {
				o := reflect.New(reflect.TypeOf(raw.kind).Elem()).Interface().(client.Object)
				if err := json.Unmarshal([]byte(strings.ReplaceAll(raw.text, name, fmt.Sprintf("m%07d", i))), o); err != nil {
					b.Fatal(err)
				}
				change(o)
				stored = append(stored, o)
			}
		}
		size := float64(heap()-before) / 1e6
		runtime.KeepAlive(stored)
		return size
	}
	trimmed := func(o client.Object) {
		trim := trimOwned
		if _, isPod := o.(*corev1.Pod); isPod {
			trim = trimPod
		}
		if _, err := transform(trim)(o); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		b.ReportMetric(store(trimmed), "MB")
		b.ReportMetric(store(func(o client.Object) { interned.values = nil; trimmed(o) }), "MB-unshared")
		b.ReportMetric(store(func(client.Object) {}), "MB-untrimmed")
	}
}

type sentObject struct {
	kind client.Object
	text string
}

// objectsOf returns what the API server sends of the objects of a Memcached of three shards.
func objectsOf(b *testing.B, name string) (sent []sentObject) {
	b.Helper()
	spec := v1alpha1.MemcachedSpec{Size: ptr.To[int32](3), Memory: ptr.To(resource.MustParse("64Mi")), MaxItemSize: ptr.To(resource.MustParse("1Mi")), MaxConnections: ptr.To[int32](1024), Threads: ptr.To[int32](4)}
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "0f2a7d0e-3c1b-4a55-9a39-1d2f5e2b7c10"}, Spec: spec}
	shards := make([]resources.Shard, 3)
	for i := range shards {
		shards[i].Revision = resources.NewPodRevision(&spec, resources.Image{Reference: "docker.io/library/memcached:1.6.45"})
	}
	add := func(o client.Object) {
		text, err := json.Marshal(o)
		if err != nil {
			b.Fatal(err)
		}
		sent = append(sent, sentObject{o, string(text)})
	}
	build := resources.NewBuilder(m, resources.Options{AgentImage: "ghcr.io/memcached-operator/memcached-operator:v1.0.0"})
	for _, want := range build.Desired(shards) {
		built, err := build.Build(want)
		if err != nil {
			b.Fatal(err)
		}
		applied, err := json.Marshal(built.Apply)
		if err != nil {
			b.Fatal(err)
		}
		var tree map[string]any
		o, _ := resources.NewObject(want.Key.Kind).(client.Object)
		if err := json.Unmarshal(applied, o); err != nil {
			b.Fatal(err)
		}
		if err := json.Unmarshal(applied, &tree); err != nil {
			b.Fatal(err)
		}
		fields, err := json.Marshal(fieldsOf(tree))
		if err != nil {
			b.Fatal(err)
		}
		o.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: v1alpha1.ManagedByValue, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields))},
		})
		add(o)
		if set, ok := o.(*appsv1.ReplicaSet); ok {
			pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: set.Spec.Template.Spec}
			pod.Namespace, pod.Name = "team", set.Name+"-x2x4x"
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
			pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1",
				ContainerStatuses: []corev1.ContainerStatus{{Name: "memcached", Ready: true, Image: "docker.io/library/memcached:1.6.45", Resources: &pod.Spec.Containers[0].Resources}}}
			add(pod)
		}
	}
	return sent
}

// fieldsOf returns the set of the fields of an object as JSON.
func fieldsOf(value any) any {
	set := map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			set["f:"+name] = fieldsOf(field)
		}
	case []any:
		for _, item := range v {
			key := "."
			if m, ok := item.(map[string]any); ok && m["name"] != nil {
				key = fmt.Sprintf(`k:{"name":%q}`, m["name"])
			}
			set[key] = fieldsOf(item)
		}
	}
	return set
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
