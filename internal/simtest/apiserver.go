package simtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/schemaedit"
)

// Scheme has the kinds of Kubernetes and of the operator.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
})

// InMemory is the namespace of a Server in memory.
const InMemory = "default"

// NewServer returns an API server in memory.
func NewServer(now func() time.Time, uid func() types.UID) *Server {
	m := &memory{now: now, uid: uid, objects: map[Kind]map[client.ObjectKey]client.Object{}, version: 1}
	server := Around(m, InMemory)
	m.mutate = func(was, is client.Object) {
		if server.Mutates != nil {
			server.Mutates(was, is)
		}
	}
	server.look = func(k Kind, name string) (client.Object, error) {
		return m.find(k, client.ObjectKey{Namespace: InMemory, Name: name})
	}
	return server
}

// memory is an API server: it keeps objects with identity, age, versions, generation, status and, of the kinds that are
// applied, the owners of their fields. Our kinds pass the admission of their CRDs. It has no controller, and neither
// defaults nor validates the kinds of Kubernetes. Nothing calls the other methods of a client.
//
// controller-runtime's fake client converts an object to JSON and back six times to write a status, which was half of
// the simulation's time.
type memory struct {
	client.Client
	now func() time.Time
	uid func() types.UID
	// mutate is a policy: it changes an object that is created, or replaces another one, before it is kept.
	mutate func(was, is client.Object)
	// objects are never changed, only replaced.
	objects map[Kind]map[client.ObjectKey]client.Object
	// version is that of the last write, and services is how many were created.
	version, services int
}

// find returns an object.
func (m *memory) find(k Kind, key client.ObjectKey) (client.Object, error) {
	if o, ok := m.objects[k][key]; ok {
		return o, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: string(k)}, key.Name)
}

// put keeps a new version of an object.
func (m *memory) put(k Kind, o client.Object) {
	m.version++
	o.SetResourceVersion(strconv.Itoa(m.version))
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if m.objects[k] == nil {
		m.objects[k] = map[client.ObjectKey]client.Object{}
	}
	m.objects[k][client.ObjectKeyFromObject(o)] = o
}

// copyTo sets an object to a copy of one that is kept.
func copyTo(from, to client.Object) error {
	u, ok := to.(*unstructured.Unstructured)
	if !ok {
		reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
		return nil
	}
	gvk := u.GroupVersionKind()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	u.Object = fields
	u.SetGroupVersionKind(gvk)
	return err
}

// Get implements client.Reader.
func (m *memory) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	k := kindIn(o)
	have, err := m.find(k, key)
	if err != nil {
		return err
	}
	return copyTo(have, o)
}

// List implements client.Reader. It ignores field selectors: there are no indexes.
func (m *memory) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	how := (&client.ListOptions{}).ApplyOptions(options)
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	var found []client.Object
	for key, o := range m.objects[Kind(items.Type().Elem().Name())] {
		if (how.Namespace == "" || how.Namespace == key.Namespace) && (how.LabelSelector == nil || how.LabelSelector.Matches(labels.Set(o.GetLabels()))) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b client.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	setItems(items, found)
	return nil
}

// Create implements client.Writer.
func (m *memory) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	how := (&client.CreateOptions{}).ApplyOptions(options)
	k := kindIn(o)
	if o.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion can not be set for Create requests")
	}
	made, err := admitted(ctx, k, o, nil)
	if err != nil {
		return err
	}
	if _, exists := m.objects[k][client.ObjectKeyFromObject(o)]; exists {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: string(k)}, o.GetName())
	}
	m.mutate(nil, made)
	if made, err = owned(k, nil, made, how.FieldManager); err != nil {
		return err
	}
	if len(how.DryRun) > 0 {
		return copyTo(made, o)
	}
	m.begin(k, made)
	return copyTo(made, o)
}

// begin keeps an object that is new.
func (m *memory) begin(k Kind, o client.Object) {
	created := metav1.NewTime(m.now().Truncate(time.Second))
	o.SetUID(m.uid())
	o.SetCreationTimestamp(created)
	o.SetGeneration(1)
	o.SetDeletionTimestamp(nil)
	fields := o.GetManagedFields()
	for i := range fields {
		fields[i].Time = &created
	}
	o.SetManagedFields(fields)
	if service, ok := o.(*corev1.Service); ok {
		if m.services++; service.Spec.ClusterIP == "" {
			service.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", m.services/250, 1+m.services%250)
			service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
		}
	}
	m.put(k, o)
}

// Update implements client.Writer.
func (m *memory) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	how := (&client.UpdateOptions{}).ApplyOptions(options)
	k := kindIn(o)
	was, err := m.find(k, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	is, err := admitted(ctx, k, o, was)
	if err != nil {
		return err
	}
	return m.change(k, was, is, how.FieldManager, o)
}

// change keeps a version of an object with the status that it had, and sets another object to the result.
func (m *memory) change(k Kind, was, is client.Object, manager string, result client.Object) error {
	if status := statusOf(is); status.IsValid() {
		status.Set(statusOf(was))
	}
	if is.GetManagedFields() == nil {
		is.SetManagedFields(was.GetManagedFields())
	}
	m.mutate(was, is)
	is, err := owned(k, was, is, manager)
	if err != nil {
		return err
	}
	return m.replace(k, was, is, result)
}

// changeStatus keeps an object with another status, and sets another object to the result.
func (m *memory) changeStatus(k Kind, was, of, result client.Object) error {
	is := was.DeepCopyObject().(client.Object)
	is.SetResourceVersion(of.GetResourceVersion())
	status := statusOf(is)
	if !status.IsValid() {
		return apierrors.NewNotFound(schema.GroupResource{Resource: string(k)}, was.GetName())
	}
	status.SetZero()
	if err := throughJSON(statusOf(of).Interface(), status.Addr().Interface()); err != nil {
		return err
	}
	return m.replace(k, was, is, result)
}

// replace keeps a version of an object in the place of another one, whose identity it keeps.
func (m *memory) replace(k Kind, was, is, result client.Object) error {
	if err := unchanged(k, was, is); err != nil {
		return err
	}
	if budget, ok := is.(*policyv1.PodDisruptionBudget); ok && budget.Spec.MinAvailable != nil && budget.Spec.MaxUnavailable != nil {
		return apierrors.NewInvalid(schema.GroupKind{Kind: string(k)}, is.GetName(), field.ErrorList{field.Invalid(field.NewPath("spec"), budget.Spec, "minAvailable and maxUnavailable cannot be both set")})
	}
	if service, ok := is.(*corev1.Service); ok && service.Spec.ClusterIP == "" {
		service.Spec.ClusterIP, service.Spec.ClusterIPs = was.(*corev1.Service).Spec.ClusterIP, was.(*corev1.Service).Spec.ClusterIPs
	}
	is.SetUID(was.GetUID())
	is.SetCreationTimestamp(was.GetCreationTimestamp())
	is.SetDeletionTimestamp(was.GetDeletionTimestamp())
	is.SetResourceVersion(was.GetResourceVersion())
	is.SetGeneration(was.GetGeneration())
	is.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if !equality.Semantic.DeepEqual(specOf(was), specOf(is)) {
		is.SetGeneration(was.GetGeneration() + 1)
	}
	switch _, isPod := is.(*corev1.Pod); {
	case is.GetDeletionTimestamp() != nil && len(is.GetFinalizers()) == 0 && !isPod: // a pod stays until its kubelet lets it go
		delete(m.objects[k], client.ObjectKeyFromObject(is))
	case same(was, is): // the API server keeps an object that a write does not change as it is
		is = was
	default:
		m.put(k, is)
	}
	return copyTo(is, result)
}

// unchanged returns why a version can't take the place of another one: it was made of an earlier one.
func unchanged(k Kind, was, is client.Object) error {
	resource := schema.GroupResource{Resource: string(k)}
	switch version, uid := is.GetResourceVersion(), is.GetUID(); {
	case version != "" && version != was.GetResourceVersion():
		return apierrors.NewConflict(resource, was.GetName(), errors.New("object was modified"))
	case uid != "" && uid != was.GetUID():
		return apierrors.NewConflict(resource, was.GetName(), errors.New("the UID in the precondition is another"))
	}
	return nil
}

// Patch implements client.Writer.
func (m *memory) Patch(_ context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	how := (&client.PatchOptions{}).ApplyOptions(options)
	if isDryRun(options) {
		return m.patch(o, patch, func(k Kind, was, is client.Object) error {
			m.mutate(was, is)
			return cmp.Or(unchanged(k, was, is), copyTo(is, o))
		})
	}
	return m.patch(o, patch, func(k Kind, was, is client.Object) error { return m.change(k, was, is, how.FieldManager, o) })
}

// patch passes on what a patch makes of an object.
func (m *memory) patch(o client.Object, patch client.Patch, write func(k Kind, was, is client.Object) error) error {
	k := kindIn(o)
	was, err := m.find(k, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	change, err := patch.Data(o)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(was)
	if err != nil {
		return err
	}
	switch patch.Type() {
	case types.MergePatchType:
		raw, err = mergePatch(raw, change)
	case types.StrategicMergePatchType:
		raw, err = strategicpatch.StrategicMergePatch(raw, change, was)
	default:
		err = fmt.Errorf("patches of type %s are not supported", patch.Type())
	}
	if err != nil {
		return err
	}
	is := like(was)
	if err := json.Unmarshal(raw, is); err != nil {
		return err
	}
	return write(k, was, is)
}

// mergePatch applies a JSON merge patch.
func mergePatch(raw, change []byte) ([]byte, error) {
	var object, patch map[string]any
	if err := errors.Join(utiljson.Unmarshal(raw, &object), utiljson.Unmarshal(change, &patch)); err != nil {
		return nil, err
	}
	merge(object, patch)
	return json.Marshal(object)
}

func merge(object, patch map[string]any) {
	for name, value := range patch {
		fields, isObject := value.(map[string]any)
		switch has, _ := object[name].(map[string]any); {
		case value == nil:
			delete(object, name)
		case isObject && has == nil:
			has = map[string]any{}
			object[name] = has
			fallthrough
		case isObject:
			merge(has, fields)
		default:
			object[name] = value
		}
	}
}

// Delete implements client.Writer.
func (m *memory) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	how := (&client.DeleteOptions{}).ApplyOptions(options)
	k := kindIn(o)
	key := client.ObjectKeyFromObject(o)
	have, err := m.find(k, key)
	if err != nil {
		return err
	}
	if p := how.Preconditions; p != nil && (p.UID != nil && *p.UID != have.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != have.GetResourceVersion()) {
		return apierrors.NewConflict(schema.GroupResource{Resource: string(k)}, key.Name, errors.New("the object in the precondition is another, or another version"))
	}
	stays := len(have.GetFinalizers()) > 0
	if pod, ok := have.(*corev1.Pod); ok { // one on a node stays until its kubelet has stopped it
		stays = pod.Spec.NodeName != "" && (how.GracePeriodSeconds == nil || *how.GracePeriodSeconds > 0)
	}
	switch {
	case !stays:
		delete(m.objects[k], key)
	case have.GetDeletionTimestamp() == nil:
		have = have.DeepCopyObject().(client.Object)
		have.SetDeletionTimestamp(new(metav1.NewTime(m.now().Truncate(time.Second))))
		m.put(k, have)
	}
	return nil
}

// Apply implements client.Writer.
func (m *memory) Apply(_ context.Context, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	how := (&client.ApplyOptions{}).ApplyOptions(options)
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	meant := &unstructured.Unstructured{}
	if err := meant.UnmarshalJSON(raw); err != nil {
		return err
	}
	k, uid := Kind(meant.GetKind()), meant.GetUID()
	keeper, ok := owners()[k]
	if !ok {
		return fmt.Errorf("no field owner applies a %s", k)
	}
	was := m.objects[k][client.ObjectKeyFromObject(meant)]
	resource, live := schema.GroupResource{Resource: string(k)}, NewObject(k)
	switch version := meant.GetResourceVersion(); {
	case was == nil && uid != "":
		return apierrors.NewConflict(resource, meant.GetName(), fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	case was == nil:
		meant.SetResourceVersion("") // it matches no object
	case uid != "" && uid != was.GetUID():
		return apierrors.NewInvalid(meant.GroupVersionKind().GroupKind(), meant.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
	case version != "" && version != was.GetResourceVersion():
		return apierrors.NewConflict(resource, meant.GetName(), errors.New("object was modified"))
	default:
		live = was.DeepCopyObject().(client.Object)
	}
	live.GetObjectKind().SetGroupVersionKind(meant.GroupVersionKind())
	made, err := keeper.Apply(live, meant, how.FieldManager, true)
	if err != nil {
		return err
	}
	is := made.(client.Object)
	m.mutate(was, is)
	if was == nil {
		m.begin(k, is)
		return nil
	}
	return m.replace(k, was, is, NewObject(k))
}

// SubResource implements client.SubResourceClientConstructor.
func (m *memory) SubResource(name string) client.SubResourceClient {
	return memoryPart{m: m, isStatus: name == "status"}
}

// memoryPart is a subresource. Other ones than the status write all but that.
type memoryPart struct {
	client.SubResourceClient
	m        *memory
	isStatus bool
}

// Update implements client.SubResourceWriter.
func (p memoryPart) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	k := kindIn(o)
	was, err := p.m.find(k, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	return p.m.changeStatus(k, was, o, o)
}

// Patch implements client.SubResourceWriter.
func (p memoryPart) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if p.isStatus {
		return p.m.patch(o, patch, func(k Kind, was, is client.Object) error { return p.m.changeStatus(k, was, is, o) })
	}
	how := (&client.SubResourcePatchOptions{}).ApplyOptions(options)
	return p.m.Patch(ctx, o, patch, &how.PatchOptions)
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
		file := v1beta1.GroupVersion.Group + "_" + strings.ToLower(string(k)) + "s.yaml"
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

// admitted returns what the API server makes of an object.
func admitted(ctx context.Context, k Kind, o, old client.Object) (client.Object, error) {
	var from any = o
	if s := Schema(k); s != nil {
		is, err := toUnstructured(k, o)
		if err != nil {
			return nil, err
		}
		var was *unstructured.Unstructured
		if old != nil {
			if was, err = toUnstructured(k, old); err != nil {
				return nil, err
			}
		}
		if from, err = s.Admit(ctx, is, was); err != nil {
			return nil, err
		}
	}
	typed := like(o)
	if _, ok := o.(*unstructured.Unstructured); ok {
		typed = NewObject(k)
	}
	return typed, throughJSON(from, typed)
}

// like returns an empty object of the type of another one.
func like(o client.Object) client.Object {
	return reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
}

// throughJSON sets a value to what JSON has of another one.
func throughJSON(from, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

func toUnstructured(k Kind, o client.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(string(k)))
	return u, err
}

// owners are the keepers of the fields' owners of the kinds that are applied.
var owners = sync.OnceValue(func() map[Kind]*managedfields.FieldManager {
	s := Scheme()
	builtIn := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(builtIn); err != nil {
		panic(err)
	}
	converter := clientgoapply.NewTypeConverter(builtIn)
	all := map[Kind]*managedfields.FieldManager{}
	for _, o := range []client.Object{&appsv1.ReplicaSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}, &corev1.Pod{}, &batchv1.Job{}} {
		gvk, err := apiutil.GVKForObject(o, s)
		if err != nil {
			panic(err)
		}
		if all[KindOf(o)], err = managedfields.NewDefaultFieldManager(converter, s, noDefaults{}, s, gvk, gvk.GroupVersion(), subresourceOf(KindOf(o)), nil); err != nil {
			panic(err)
		}
	}
	return all
})

// subresourceOf returns the one of whose writes it is kept who set what: of a pod it is
// compared by its resources alone.
func subresourceOf(k Kind) string {
	if k == KindPod {
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

// owned returns an object with its fields' owners after a write.
func owned(k Kind, was, is client.Object, manager string) (client.Object, error) {
	keeper, ok := owners()[k]
	switch {
	case !ok:
		return is, nil
	case k == KindPod && was == nil:
		// No test needs the owner of its first resources, and counting their fields is
		// half of the time to create a pod.
		is.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`), Subresource: subresourceOf(k)}})
		return is, nil
	case was == nil:
		was = NewObject(k)
	case isSameSize(was, is) || sameButStatus(was, is):
		is.SetManagedFields(was.GetManagedFields())
		return is, nil
	default:
		was = was.DeepCopyObject().(client.Object)
	}
	gvk, err := apiutil.GVKForObject(is, Scheme())
	if err != nil {
		return nil, err
	}
	was.GetObjectKind().SetGroupVersionKind(gvk)
	is.GetObjectKind().SetGroupVersionKind(gvk)
	made, err := keeper.Update(was, is, manager)
	if err != nil {
		return nil, err
	}
	return made.(client.Object), nil
}

// same reports whether two versions differ at most in when their fields were written. The second one then has the times
// of the first one.
func same(was, is client.Object) bool {
	if !slices.EqualFunc(was.GetManagedFields(), is.GetManagedFields(), func(a, b metav1.ManagedFieldsEntry) bool {
		a.Time, b.Time = nil, nil
		return equality.Semantic.DeepEqual(a, b)
	}) {
		return false
	}
	fields := is.GetManagedFields()
	is.SetManagedFields(was.GetManagedFields())
	if equality.Semantic.DeepEqual(was, is) {
		return true
	}
	is.SetManagedFields(fields)
	return false
}

// statusOf returns an object's status, which is invalid where it has none.
func statusOf(o client.Object) reflect.Value { return reflect.ValueOf(o).Elem().FieldByName("Status") }

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
