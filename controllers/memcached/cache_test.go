package memcached

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// keptOf reads what the cache would keep of what there is. The tests with a kubelet read
// through it, so that a part of an object that is needed in a change of the spec, a
// loss or a bootstrap is missed if the cache does not keep it.
type keptOf struct{ client.Client }

// transformOf returns what the cache does to objects of a kind.
func transformOf(o client.Object) toolscache.TransformFunc {
	options := CacheOptions("")
	for kind, of := range options.ByObject {
		if reflect.TypeOf(kind) == reflect.TypeOf(o) {
			return of.Transform
		}
	}
	return options.DefaultTransform
}

func trim(o runtime.Object) error {
	_, err := transformOf(o.(client.Object))(o)
	return err
}

// Get implements client.Reader.
func (k keptOf) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := k.Client.Get(ctx, key, o, options...); err != nil {
		return err
	}
	return trim(o)
}

// List implements client.Reader.
func (k keptOf) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := k.Client.List(ctx, list, options...); err != nil {
		return err
	}
	return meta.EachListItem(list, trim)
}

func TestTheCacheKeepsWhatTheOperatorReads(t *testing.T) {
	w := newWorld(t)
	w.create("cache", everything)
	w.settle("cache")
	pod := w.runPod("cache-0", "a", "10.0.0.1")
	size := func(o client.Object) int {
		raw, err := json.Marshal(o)
		w.must(err)
		return len(raw)
	}
	set, service, m := &appsv1.ReplicaSet{}, &corev1.Service{}, &v1alpha1.Memcached{}
	for _, c := range []struct {
		object  client.Object
		name    string
		entries int // of who manages which field
	}{{set, "cache-0", 1}, {service, "cache-0", 1}, {pod, "cache-0-a", 0}, {m, "cache", 0}} {
		w.read(c.name, c.object)
		entry := metav1.ManagedFieldsEntry{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}
		c.object.SetManagedFields(append(c.object.GetManagedFields(), entry))
		c.object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "mine": "stays"})
		before := size(c.object)
		for range 2 { // the cache may do it again
			w.must(trim(c.object))
		}
		t.Logf("%T: %d bytes as JSON, %d before", c.object, size(c.object), before)
		if n := len(c.object.GetManagedFields()); n != c.entries {
			t.Errorf("%T has %d entries of managed fields, want %d", c.object, n, c.entries)
		}
		if a := c.object.GetAnnotations(); len(a) != 1 || a["mine"] != "stays" {
			t.Errorf("%T has the annotations %v", c.object, a)
		}
	}
	if pod.Spec.NodeName != "node1" || len(pod.Spec.Tolerations) < 2 || pod.Spec.PriorityClassName == "" || len(pod.Spec.ImagePullSecrets) != 1 || len(pod.Spec.Volumes) != 0 {
		t.Errorf("of the pod's spec it keeps %+v", pod.Spec)
	}
	gone := toolscache.DeletedFinalStateUnknown{Key: "a/b"}
	if o, err := CacheOptions("").DefaultTransform(gone); err != nil || o != gone {
		t.Errorf("what the cache missed the end of becomes %v, %v", o, err)
	}
}

func TestObjectsOfAKindShareWhatTheOperatorOwnsOfThem(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 2")
	w.settle("cache")
	ownFields.all = nil // of other tests
	var owned [2]*metav1.FieldsV1
	for i, name := range []string{"cache-0", "cache-1"} {
		set := &appsv1.ReplicaSet{}
		w.read(name, set)
		before := set.DeepCopy()
		w.must(trim(set))
		owned[i] = set.ManagedFields[0].FieldsV1
		if !slices.ContainsFunc(before.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.FieldsV1.Equal(*owned[i]) }) {
			t.Errorf("%s got the fields of another: %s", name, owned[i])
		}
	}
	if owned[0] != owned[1] {
		t.Error("two ReplicaSets hold the same twice")
	}
	var sets fieldSets
	for i := range 2 * maxFieldSets {
		sets.shared(metav1.NewFieldsV1(strconv.Itoa(i)))
	}
	if len(sets.all) != maxFieldSets {
		t.Errorf("it holds %d sets", len(sets.all))
	}
}

// The watches of the operator hold no Secret of the cluster, nor anything else that it
// did not make; a read by mistake does not begin one either.
func TestWhatIsNotWatchedIsNotRead(t *testing.T) {
	options := CacheOptions("")
	if !options.ReaderFailOnMissingInformer {
		t.Error("a read of Secrets would hold all Secrets of the cluster")
	}
	for kind, of := range options.ByObject {
		if of.Label == nil || of.Label.Empty() {
			t.Errorf("all objects of %T are held", kind)
		}
	}
}
