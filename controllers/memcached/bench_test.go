package memcached

import (
	"context"
	"reflect"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// BenchmarkReconcileNothingToDo reconciles a settled Memcached of three shards, whose
// objects are read from a cache. An operator does that for each when it starts, and
// for each event that changes nothing.
func BenchmarkReconcileNothingToDo(b *testing.B) {
	r, request := settledMemcached(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Reconcile(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}

// settledMemcached returns an operator with a cache that holds a Memcached of three
// shards and all that the API server has of it.
func settledMemcached(b *testing.B) (*Reconciler, ctrl.Request) {
	b.Helper()
	w := newWorld(b)
	w.create("cache", "size: 3")
	w.settle("cache")
	for ordinal := range 3 {
		pod := w.runPod(manifests.ShardName("cache", ordinal), "a", "10.0.0."+strconv.Itoa(ordinal+1))
		w.answer(pod, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.45")
	}
	m := w.settle("cache")
	if m.Status.Phase != v1alpha1.PhaseRunning {
		b.Fatalf("it is not settled: %+v", m.Status)
	}
	s := &shelf{Client: w.reconciler.Client, objects: map[reflect.Type][]client.Object{reflect.TypeFor[v1alpha1.Memcached](): {m}}}
	for kind, options := range CacheOptions(w.namespace).ByObject {
		gvk, err := apiutil.GVKForObject(kind, scheme)
		w.must(err)
		list, err := scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		w.must(err)
		w.must(admin.List(w.ctx, list.(client.ObjectList), client.InNamespace(w.namespace), client.MatchingLabelsSelector{Selector: options.Label}))
		w.must(meta.EachListItem(list, func(o runtime.Object) error {
			if options.Transform != nil {
				kept, err := options.Transform(o)
				w.must(err)
				o = kept.(runtime.Object)
			}
			of := reflect.TypeOf(o).Elem()
			s.objects[of] = append(s.objects[of], o.(client.Object))
			return nil
		}))
	}
	w.reconciler.Client, w.reconciler.Live = s, s
	return w.reconciler, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}
}

// shelf is a client that reads as one does from a cache, and does not write.
type shelf struct {
	client.Client
	objects map[reflect.Type][]client.Object
}

// Get implements client.Reader.
func (s *shelf) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, o := range s.objects[reflect.TypeOf(into).Elem()] {
		if client.ObjectKeyFromObject(o) == key {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List implements client.Reader.
func (s *shelf) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	items := reflect.ValueOf(into).Elem().FieldByName("Items")
	var found []runtime.Object
	for _, object := range s.objects[items.Type().Elem()] {
		switch {
		case !o.LabelSelector.Matches(labels.Set(object.GetLabels())):
		case ptr.Deref(o.UnsafeDisableDeepCopy, false):
			found = append(found, object)
		default:
			found = append(found, object.DeepCopyObject())
		}
	}
	return meta.SetList(into, found)
}

// Patch implements client.Writer.
func (s *shelf) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	panic("it writes")
}

// Apply implements client.Writer.
func (s *shelf) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	panic("it writes")
}

// Status implements client.StatusClient.
func (s *shelf) Status() client.SubResourceWriter { panic("it writes") }
