package cache

import (
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// The tests of controllers/memcached read through this cache's transforms from an API server.

// Reading a kind by mistake must not cache all Secrets of the cluster either.
func TestOnlyTheOperatorsObjectsAreCached(t *testing.T) {
	options := Options("")
	if !options.ReaderFailOnMissingInformer {
		t.Error("reading a Secret would cache all Secrets of the cluster")
	}
	for kind, by := range options.ByObject {
		if by.Label == nil || by.Label.String() != v1alpha1.LabelManagedBy+"="+v1alpha1.ManagedByValue {
			t.Errorf("%T: label selector %v", kind, by.Label)
		}
	}
}

func TestNamespacesAreAListOfNames(t *testing.T) {
	for list, want := range map[string][]string{"": nil, " ": nil, "a": {"a"}, "a, b,": {"a", "b"}} {
		var got []string
		for name := range Options(list).DefaultNamespaces {
			got = append(got, name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q: namespaces %v, want %v", list, got, want)
		}
	}
}

func TestTombstoneIsStoredUnchanged(t *testing.T) {
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "a/b"}
	if o, err := Options("").DefaultTransform(tombstone); err != nil || o != tombstone {
		t.Errorf("got %v, %v", o, err)
	}
}

// The operator decides by which fields it owns, and by why a ReplicaSet has no pod.
func TestTransformKeepsWhatTheOperatorReads(t *testing.T) {
	entry := func(manager, subresource string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Operation: operation, FieldsV1: metav1.NewFieldsV1("{}")}
	}
	operator := v1alpha1.ManagedByValue
	applied := entry(operator, "", metav1.ManagedFieldsOperationApply)
	resized := entry(operator, "resize", metav1.ManagedFieldsOperationUpdate)
	entries := []metav1.ManagedFieldsEntry{
		applied, resized,
		entry(operator, "", metav1.ManagedFieldsOperationUpdate),
		entry(operator, "status", metav1.ManagedFieldsOperationApply),
		entry("kubectl", "", metav1.ManagedFieldsOperationApply),
		entry("vpa-updater", "resize", metav1.ManagedFieldsOperationUpdate),
	}
	for name, c := range map[string]struct {
		object client.Object
		want   []metav1.ManagedFieldsEntry
	}{
		"ReplicaSet": {&appsv1.ReplicaSet{}, []metav1.ManagedFieldsEntry{applied}},
		"Service":    {&corev1.Service{}, []metav1.ManagedFieldsEntry{applied}},
		"pod":        {&corev1.Pod{}, []metav1.ManagedFieldsEntry{resized}},
		"Memcached":  {&v1alpha1.Memcached{}, nil},
	} {
		c.object.SetManagedFields(slices.Clone(entries))
		if _, err := transform(func(client.Object) {})(c.object); err != nil {
			t.Fatal(err)
		}
		same := func(a, b metav1.ManagedFieldsEntry) bool {
			return a.Manager == b.Manager && a.Subresource == b.Subresource && a.Operation == b.Operation
		}
		if got := c.object.GetManagedFields(); !slices.EqualFunc(got, c.want, same) {
			t.Errorf("%s: managed fields %+v, want %+v", name, got, c.want)
		}
	}
	set := &appsv1.ReplicaSet{Status: appsv1.ReplicaSetStatus{Replicas: 1, Conditions: []appsv1.ReplicaSetCondition{{Message: "exceeded quota"}}}}
	if trimOwned(set); set.Status.Replicas != 0 || len(set.Status.Conditions) != 1 {
		t.Errorf("status %+v", set.Status)
	}
}

func TestFieldSetsAreSharedAndBounded(t *testing.T) {
	var sets fieldSets
	first := metav1.NewFieldsV1(`{"f:spec":{}}`)
	if sets.shared(first) != first || sets.shared(metav1.NewFieldsV1(`{"f:spec":{}}`)) != first {
		t.Error("equal sets are stored twice")
	}
	if other := metav1.NewFieldsV1(`{"f:status":{}}`); sets.shared(other) != other {
		t.Error("a set was replaced by another one")
	}
	sets = fieldSets{}
	for i := range 2 * maxFieldSets {
		sets.shared(metav1.NewFieldsV1(strconv.Itoa(i)))
	}
	if len(sets.all) != maxFieldSets {
		t.Errorf("%d sets are kept, want %d", len(sets.all), maxFieldSets)
	}
}
