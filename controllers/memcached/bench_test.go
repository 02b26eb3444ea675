package memcached

import (
	"context"
	"reflect"
	"strconv"
	"testing"

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
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// BenchmarkReconcileNothingToDo reconciles a Memcached of three shards in steady state, whose
// objects are read from a cache. The operator does so for each Memcached when it starts, and
// for each event that changes nothing.
func BenchmarkReconcileNothingToDo(b *testing.B) {
	r, request := idleMemcached(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Reconcile(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}

// idleMemcached returns an operator with a cache that contains a Memcached of three shards in
// steady state and its objects.
func idleMemcached(b *testing.B) (*Reconciler, ctrl.Request) {
	b.Helper()
	env := newEnv(b)
	env.create("cache", "size: 3")
	env.converge("cache")
	for ordinal := range 3 {
		env.run(resources.ShardName("cache", ordinal), "10.0.0."+strconv.Itoa(ordinal+1))
	}
	m := env.converge("cache")
	if m.Status.Phase != v1alpha1.PhaseRunning {
		b.Fatalf("not in steady state: %+v", m.Status)
	}
	s := &staticClient{Client: env.reconciler.Client, objects: map[reflect.Type][]client.Object{reflect.TypeFor[v1alpha1.Memcached](): {m}}}
	for kind, options := range cache.Options(env.namespace).ByObject {
		gvk, err := apiutil.GVKForObject(kind, simtest.Scheme())
		env.must(err)
		list, err := simtest.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		env.must(err)
		env.must(env.admin.List(env.ctx, list.(client.ObjectList), client.InNamespace(env.namespace), client.MatchingLabelsSelector{Selector: options.Label}))
		env.must(meta.EachListItem(list, func(o runtime.Object) error {
			if options.Transform != nil {
				kept, err := options.Transform(o)
				env.must(err)
				o = kept.(runtime.Object)
			}
			of := reflect.TypeOf(o).Elem()
			s.objects[of] = append(s.objects[of], o.(client.Object))
			return nil
		}))
	}
	env.reconciler.Client, env.reconciler.APIReader = s, s
	return env.reconciler, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}
}

// staticClient reads from memory, as from a cache, and rejects writes.
type staticClient struct {
	client.Client
	objects map[reflect.Type][]client.Object
}

// Get implements client.Reader.
func (s *staticClient) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, o := range s.objects[reflect.TypeOf(into).Elem()] {
		if client.ObjectKeyFromObject(o) == key {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List implements client.Reader.
func (s *staticClient) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
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
func (s *staticClient) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	panic("the operator writes")
}

// Apply implements client.Writer.
func (s *staticClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	panic("the operator writes")
}

// Status implements client.StatusClient.
func (s *staticClient) Status() client.SubResourceWriter { panic("the operator writes") }
