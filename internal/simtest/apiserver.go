package simtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/schemaedit"
)

// Scheme has the kinds of Kubernetes and of the operator.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
})

// keeper is the part of a Pod's finalizer: the fake client ends at once what has
// none, and a pod stays until its kubelet lets it go.
const keeper = "memcached-operator.io/kubelet"

// InMemory is the namespace of a Server in memory.
const InMemory = "default"

// NewServer returns an API server in memory: controller-runtime's fake client, over a tracker that does what the fake one
// does not, behind the admission of our CRDs. It has no controller, and neither defaults nor validates the kinds of
// Kubernetes.
func NewServer(now func() time.Time, uid func() types.UID) *Server {
	s := Scheme()
	t := &tracker{
		ObjectTracker: testing.NewObjectTracker(s, serializer.NewCodecFactory(s).UniversalDecoder()),
		now:           now, uid: uid,
	}
	server := Around(fake.NewClientBuilder().
		WithScheme(s).
		WithObjectTracker(t).
		WithReturnManagedFields().
		WithGlobalResourceVersionCounter().
		WithStatusSubresource(&v1alpha1.Memcached{}, &v1alpha1.MemcachedBackup{}, &v1alpha1.MemcachedRestore{}, &v1alpha1.MemcachedScheduledBackup{}).
		WithInterceptorFuncs(interceptor.Funcs{Create: createAdmitted, Update: updateAdmitted, Apply: t.applyOnly, Delete: deleteOnly}).
		Build(), InMemory)
	server.inMemory = true
	server.look = func(k Kind, name string) (client.Object, error) { // past the client, which is faster
		gvk, err := apiutil.GVKForObject(NewObject(k), s)
		if err != nil {
			return nil, err
		}
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		o, err := t.Get(resource, InMemory, name)
		if err != nil {
			return nil, err
		}
		return o.(client.Object), nil
	}
	return server
}

// Schema returns the API server's view of one of our kinds.
func Schema(k Kind) *schemaedit.Schema { return schemas()[k] }

var schemas = sync.OnceValue(func() map[Kind]*schemaedit.Schema {
	bases, err := crds()
	if err != nil {
		panic(err)
	}
	all := map[Kind]*schemaedit.Schema{}
	for _, k := range []Kind{KindMemcached, KindBackup, KindRestore, KindSchedule} {
		file := v1alpha1.GroupVersion.Group + "_" + strings.ToLower(string(k)) + "s.yaml"
		if all[k], err = schemaedit.Load(filepath.Join(bases, file)); err != nil {
			panic(err)
		}
	}
	return all
})

// crds returns the folder with the CRDs, which is in the working directory of a test or above it.
func crds() (string, error) {
	folder, err := os.Getwd()
	for err == nil {
		bases := filepath.Join(folder, "config", "crd", "bases")
		if _, missing := os.Stat(bases); missing == nil {
			return bases, nil
		}
		if filepath.Dir(folder) == folder {
			return "", errors.New("no folder above the working directory has config/crd/bases")
		}
		folder = filepath.Dir(folder)
	}
	return "", err
}

// createAdmitted creates what the API server makes of an object.
func createAdmitted(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
	return admitted(ctx, o, nil, func(o client.Object) error { return c.Create(ctx, o, options...) })
}

// updateAdmitted updates to what the API server makes of an object.
func updateAdmitted(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
	k, _ := kindIn(o)
	if Schema(k) == nil {
		return c.Update(ctx, o, options...)
	}
	old := NewObject(k)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), old); err != nil {
		return err
	}
	return admitted(ctx, o, old, func(o client.Object) error { return c.Update(ctx, o, options...) })
}

// admitted writes what the API server makes of an object, and sets the object to the result.
func admitted(ctx context.Context, o, old client.Object, write func(client.Object) error) error {
	k, _ := kindIn(o)
	s := Schema(k)
	if s == nil {
		return write(o)
	}
	is, err := toUnstructured(k, o)
	if err != nil {
		return err
	}
	var was *unstructured.Unstructured
	if old != nil {
		if was, err = toUnstructured(k, old); err != nil {
			return err
		}
	}
	if is, err = s.Admit(ctx, is, was); err != nil {
		return err
	}
	typed := NewObject(k)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(is.Object, typed); err != nil {
		return err
	}
	if err := write(typed); err != nil {
		return err
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		result, err := toUnstructured(k, typed)
		if err == nil {
			u.Object = result.Object
		}
		return err
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(typed).Elem())
	return nil
}

func toUnstructured(k Kind, o client.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(string(k)))
	return u, err
}

// applyOnly applies what is meant, and to no other object than the one that is meant.
func (t *tracker) applyOnly(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	meant := &unstructured.Unstructured{}
	if err := meant.UnmarshalJSON(raw); err != nil {
		return err
	}
	if uid := meant.GetUID(); uid != "" {
		have := NewObject(Kind(meant.GetKind()))
		err := c.Get(ctx, client.ObjectKeyFromObject(meant), have)
		if err == nil && have.GetUID() != uid {
			return apierrors.NewInvalid(schema.GroupKind{Kind: meant.GetKind()}, meant.GetName(),
				field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
		}
	}
	t.meant = meant
	return c.Apply(ctx, o, options...)
}

// deleteOnly deletes as the API server does: only the object that is meant, and a
// pod on a node when its kubelet has stopped it.
func deleteOnly(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
	var how client.DeleteOptions
	how.ApplyOptions(options)
	have := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), have); err != nil {
		return err
	}
	if p := how.Preconditions; p != nil && p.UID != nil && *p.UID != have.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Resource: reflect.TypeOf(o).Elem().Name()}, o.GetName(),
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", *p.UID, have.GetUID()))
	}
	if p := how.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != have.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Resource: reflect.TypeOf(o).Elem().Name()}, o.GetName(),
			fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s)", *p.ResourceVersion, have.GetResourceVersion()))
	}
	pod, ok := have.(*corev1.Pod)
	if ok && (pod.Spec.NodeName == "" || how.GracePeriodSeconds != nil && *how.GracePeriodSeconds == 0) {
		pod.Finalizers = nil
		if err := c.Update(ctx, pod); err != nil {
			return client.IgnoreNotFound(err)
		}
		if pod.DeletionTimestamp != nil {
			return nil
		}
		return c.Delete(ctx, pod)
	}
	return c.Delete(ctx, o, options...)
}

// tracker keeps objects as the API server does where client-go's own does not: with
// identity, age, generation and, for the kinds that are applied, the fields' owners.
type tracker struct {
	testing.ObjectTracker
	now func() time.Time
	uid func() types.UID
	// meant is what is applied. What the fake client passes on has a status, and
	// each field that was omitted.
	meant *unstructured.Unstructured
	// services is how many were created.
	services int
}

// owners are the keepers of the fields' owners of the kinds that are applied.
var owners = sync.OnceValue(func() map[schema.GroupVersionKind]*managedfields.FieldManager {
	s := Scheme()
	builtIn := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(builtIn); err != nil {
		panic(err)
	}
	converter := clientgoapply.NewTypeConverter(builtIn)
	all := map[schema.GroupVersionKind]*managedfields.FieldManager{}
	for _, o := range []client.Object{&appsv1.ReplicaSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}, &corev1.Pod{}, &batchv1.Job{}} {
		gvk, err := apiutil.GVKForObject(o, s)
		if err != nil {
			panic(err)
		}
		if all[gvk], err = managedfields.NewDefaultFieldManager(converter, s, noDefaults{}, s, gvk, gvk.GroupVersion(), subresourceOf(gvk), nil); err != nil {
			panic(err)
		}
	}
	return all
})

// subresourceOf returns the one of whose writes it is kept who set what: of a pod it is
// compared by its resources alone.
func subresourceOf(gvk schema.GroupVersionKind) string {
	if gvk.Kind == string(KindPod) {
		return "resize"
	}
	return ""
}

// isSameSize reports whether two versions are of a pod and with the same resources.
func isSameSize(a, b client.Object) bool {
	was, ok := a.(*corev1.Pod)
	if !ok {
		return false
	}
	is := b.(*corev1.Pod)
	return slices.EqualFunc(was.Spec.Containers, is.Spec.Containers, func(a, b corev1.Container) bool {
		return equality.Semantic.DeepEqual(a.Resources, b.Resources)
	})
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

func (t *tracker) Create(gvr schema.GroupVersionResource, o runtime.Object, ns string, options ...metav1.CreateOptions) error {
	gvk, err := apiutil.GVKForObject(o, Scheme())
	if err != nil {
		return err
	}
	blank, err := Scheme().New(gvk)
	if err != nil {
		return err
	}
	if pod, ok := o.(*corev1.Pod); ok {
		// No test needs the owner of its first resources, and counting their fields is
		// half of the time to create a pod.
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: first(options).FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`), Subresource: subresourceOf(gvk)}}
		return t.create(gvr, pod, ns)
	}
	if o, err = t.owned(gvk, blank, o, first(options).FieldManager); err != nil {
		return err
	}
	return t.create(gvr, o, ns)
}

func (t *tracker) create(gvr schema.GroupVersionResource, o runtime.Object, ns string) error {
	m, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	m.SetUID(t.uid())
	m.SetCreationTimestamp(metav1.NewTime(t.now().Truncate(time.Second)))
	m.SetGeneration(1)
	fields := m.GetManagedFields()
	for i := range fields {
		fields[i].Time = ptr.To(metav1.NewTime(t.now().Truncate(time.Second)))
	}
	m.SetManagedFields(fields)
	switch o := o.(type) {
	case *corev1.Pod:
		o.Finalizers = []string{keeper}
	case *corev1.Service:
		if t.services++; o.Spec.ClusterIP == "" {
			o.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", t.services/250, 1+t.services%250)
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
	}
	return t.ObjectTracker.Create(gvr, o, ns)
}

// owned returns an object with its fields' owners after an update.
func (t *tracker) owned(gvk schema.GroupVersionKind, was, is runtime.Object, manager string) (runtime.Object, error) {
	keeper, ok := owners()[gvk]
	if !ok {
		return is, nil
	}
	if a, b := was.(client.Object), is.(client.Object); isSameSize(a, b) || sameButStatus(a, b) {
		b.SetManagedFields(a.GetManagedFields())
		return is, nil
	}
	was.GetObjectKind().SetGroupVersionKind(gvk)
	is.GetObjectKind().SetGroupVersionKind(gvk)
	return keeper.Update(was, is, manager)
}

func (t *tracker) Update(gvr schema.GroupVersionResource, o runtime.Object, ns string, options ...metav1.UpdateOptions) error {
	return t.update(gvr, o, ns, func(gvk schema.GroupVersionKind, was runtime.Object) (runtime.Object, error) {
		return t.owned(gvk, was, o, first(options).FieldManager)
	})
}

func (t *tracker) Patch(gvr schema.GroupVersionResource, o runtime.Object, ns string, options ...metav1.PatchOptions) error {
	return t.Update(gvr, o, ns, metav1.UpdateOptions{FieldManager: first(options).FieldManager})
}

func (t *tracker) Apply(gvr schema.GroupVersionResource, o runtime.Object, ns string, options ...metav1.PatchOptions) error {
	gvk, err := apiutil.GVKForObject(o, Scheme())
	if err != nil {
		return err
	}
	keeper, ok := owners()[gvk]
	if !ok {
		return fmt.Errorf("no field owner applies a %s", gvk.Kind)
	}
	apply := func(was runtime.Object) (runtime.Object, error) {
		was.GetObjectKind().SetGroupVersionKind(gvk)
		return keeper.Apply(was, t.meant, first(options).FieldManager, true)
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	if _, err := t.Get(gvr, ns, m.GetName()); apierrors.IsNotFound(err) {
		blank, err := Scheme().New(gvk)
		if err != nil {
			return err
		}
		t.meant.SetResourceVersion("") // it matches no object
		made, err := apply(blank)
		if err != nil {
			return err
		}
		return t.create(gvr, made, ns)
	}
	return t.update(gvr, o, ns, func(_ schema.GroupVersionKind, was runtime.Object) (runtime.Object, error) { return apply(was) })
}

// update keeps the result of a change to an object, with the identity that it had.
func (t *tracker) update(gvr schema.GroupVersionResource, o runtime.Object, ns string, become func(schema.GroupVersionKind, runtime.Object) (runtime.Object, error)) error {
	gvk, err := apiutil.GVKForObject(o, Scheme())
	if err != nil {
		return err
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	was, err := t.Get(gvr, ns, m.GetName())
	if err != nil {
		return err
	}
	version := m.GetResourceVersion()
	is, err := become(gvk, was.DeepCopyObject())
	if err != nil {
		return err
	}
	before, after := was.(client.Object), is.(client.Object)
	if uid := after.GetUID(); uid != "" && uid != before.GetUID() {
		return apierrors.NewConflict(gvr.GroupResource(), after.GetName(), errors.New("the UID in the precondition is another"))
	}
	if service, ok := is.(*corev1.Service); ok && service.Spec.ClusterIP == "" {
		service.Spec.ClusterIP, service.Spec.ClusterIPs = was.(*corev1.Service).Spec.ClusterIP, was.(*corev1.Service).Spec.ClusterIPs
	}
	after.SetUID(before.GetUID())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	after.SetGeneration(before.GetGeneration())
	if !reflect.DeepEqual(specOf(before), specOf(after)) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	if at := after.GetDeletionTimestamp(); at != nil {
		now := metav1.NewTime(t.now().Truncate(time.Second))
		if before.GetDeletionTimestamp() != nil {
			now = *before.GetDeletionTimestamp()
		}
		after.SetDeletionTimestamp(&now)
	}
	// The API server keeps an object that a write does not change as it is.
	after.SetResourceVersion(before.GetResourceVersion())
	if same(before, after) {
		return nil
	}
	after.SetResourceVersion(version)
	return t.ObjectTracker.Update(gvr, is, ns)
}

// same reports whether two versions differ at most in when their fields were written.
func same(a, b client.Object) bool {
	a, b = a.DeepCopyObject().(client.Object), b.DeepCopyObject().(client.Object)
	for _, o := range []client.Object{a, b} {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		fields := o.GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
		o.SetManagedFields(fields)
	}
	return reflect.DeepEqual(a, b)
}

// sameButStatus reports whether two versions differ in their status at most.
func sameButStatus(a, b client.Object) bool {
	return reflect.DeepEqual(specOf(a), specOf(b)) && maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		reflect.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}

// specOf returns an object's spec, nil where it has none.
func specOf(o client.Object) any {
	spec := reflect.ValueOf(o).Elem().FieldByName("Spec")
	if !spec.IsValid() {
		return nil
	}
	return spec.Interface()
}

// first returns the options of a call, which are one value at most.
func first[T any](options []T) (o T) {
	if len(options) > 0 {
		o = options[0]
	}
	return o
}
