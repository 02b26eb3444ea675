package memcached

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Its result may differ: it had other credentials and another agent image.
func TestPreflightPodOfDeletedMemcachedOfTheSameNameIsIgnored(t *testing.T) {
	env := newEnv(t)
	m := env.create("cache", "size: 1")
	env.converge("cache")
	template := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Labels: resources.PreflightLabels("cache")}}
	template.Spec.Containers = []corev1.Container{{Name: resources.Container, Image: "memcached"}}
	for name, uid := range map[string]types.UID{"own": m.UID, "before": "before"} {
		pod := template.DeepCopy()
		pod.Name = name
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Memcached", Name: "cache", UID: uid, Controller: ptr.To(true)}}
		env.must(env.admin.Create(env.ctx, pod))
	}
	obs := env.observe("cache")
	if len(obs.PreflightPods) != 1 || obs.PreflightPods[0].Name != "own" {
		t.Errorf("%d preflight pods", len(obs.PreflightPods))
	}
}

// cachedClient reads what the cache would contain. The tests with a fake cluster use it, so
// that they fail when the cache lacks a field that the operator needs.
type cachedClient struct{ client.Client }

// transformOf returns how the cache transforms objects of a kind.
func transformOf(o client.Object) toolscache.TransformFunc {
	options := cache.Options("")
	for kind, by := range options.ByObject {
		if reflect.TypeOf(kind) == reflect.TypeOf(o) {
			return by.Transform
		}
	}
	return options.DefaultTransform
}

func trim(o runtime.Object) error {
	_, err := transformOf(o.(client.Object))(o)
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

func TestCacheKeepsWhatTheOperatorReads(t *testing.T) {
	env := newEnv(t)
	env.create("cache", everyField)
	env.converge("cache")
	pod := env.runPod("cache-0", "a", "10.0.0.1")
	size := func(o client.Object) int {
		raw, err := json.Marshal(o)
		env.must(err)
		return len(raw)
	}
	set, service, m := &appsv1.ReplicaSet{}, &corev1.Service{}, &v1alpha1.Memcached{}
	for _, c := range []struct {
		object client.Object
		name   string
		// entries is how many managed fields entries the cache keeps.
		entries     int
		annotations []string
	}{
		{set, "cache-0", 1, []string{annotations.Update}}, {service, "cache-0", 1, nil},
		{pod, "cache-0-a", 0, []string{annotations.Update}}, {m, "cache", 0, []string{v1alpha1.AnnotationRetry}},
	} {
		env.read(c.name, c.object)
		entry := metav1.ManagedFieldsEntry{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}
		c.object.SetManagedFields(append(c.object.GetManagedFields(), entry))
		c.object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "example.com/theirs": "yes", v1alpha1.AnnotationRetry: "1", annotations.Update: "{}"})
		before := size(c.object)
		for range 2 { // the cache may transform an object again
			env.must(trim(c.object))
		}
		t.Logf("%T: %d bytes as JSON, %d before", c.object, size(c.object), before)
		if n := len(c.object.GetManagedFields()); n != c.entries {
			t.Errorf("%T has %d managed fields entries, want %d", c.object, n, c.entries)
		}
		if a := slices.Collect(maps.Keys(c.object.GetAnnotations())); !slices.Equal(a, c.annotations) {
			t.Errorf("%T has the annotations %v, want %v", c.object, a, c.annotations)
		}
	}
	if pod.Spec.NodeName != "node1" || len(pod.Spec.Tolerations) < 2 || pod.Spec.PriorityClassName == "" || len(pod.Spec.ImagePullSecrets) != 1 || !resources.MountsTLS(pod, "own") || !resources.MountsUsers(pod, "users") || len(pod.Spec.Volumes) != 2 {
		t.Errorf("pod spec %+v", pod.Spec)
	}
}

func TestObjectsOfOneKindShareTheSetOfOwnedFields(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 2")
	env.converge("cache")
	var owned [2]*metav1.FieldsV1
	for i, name := range []string{"cache-0", "cache-1"} {
		set := &appsv1.ReplicaSet{}
		env.read(name, set)
		before := set.DeepCopy()
		env.must(trim(set))
		owned[i] = set.ManagedFields[0].FieldsV1
		if !slices.ContainsFunc(before.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.FieldsV1.Equal(*owned[i]) }) {
			t.Errorf("%s has the fields of another object: %s", name, owned[i])
		}
	}
	if owned[0] != owned[1] {
		t.Error("two ReplicaSets have two copies of the same set")
	}
}
