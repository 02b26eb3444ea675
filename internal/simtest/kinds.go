package simtest

import (
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// Kind of an object.
type Kind string

// The kinds of objects that a [Server] keeps the history of.
const (
	KindMemcached     Kind = "Memcached"
	KindBackup        Kind = "MemcachedBackup"
	KindRestore       Kind = "MemcachedRestore"
	KindSchedule      Kind = "MemcachedScheduledBackup"
	KindReplicaSet    Kind = "ReplicaSet"
	KindService       Kind = "Service"
	KindBudget        Kind = "PodDisruptionBudget"
	KindNetworkPolicy Kind = "NetworkPolicy"
	KindPod           Kind = "Pod"
	KindSecret        Kind = "Secret"
	KindJob           Kind = "Job"
)

// Kinds in the order in which a cluster goes through them.
var Kinds = []Kind{KindMemcached, KindBackup, KindRestore, KindSchedule, KindReplicaSet, KindService, KindBudget, KindNetworkPolicy, KindSecret, KindPod, KindJob}

// goTypes of the objects of the kinds.
var goTypes = map[Kind]reflect.Type{
	KindMemcached:     reflect.TypeFor[v1beta1.Memcached](),
	KindBackup:        reflect.TypeFor[v1beta1.MemcachedBackup](),
	KindRestore:       reflect.TypeFor[v1beta1.MemcachedRestore](),
	KindSchedule:      reflect.TypeFor[v1beta1.MemcachedScheduledBackup](),
	KindReplicaSet:    reflect.TypeFor[appsv1.ReplicaSet](),
	KindService:       reflect.TypeFor[corev1.Service](),
	KindBudget:        reflect.TypeFor[policyv1.PodDisruptionBudget](),
	KindNetworkPolicy: reflect.TypeFor[networkingv1.NetworkPolicy](),
	KindSecret:        reflect.TypeFor[corev1.Secret](),
	KindPod:           reflect.TypeFor[corev1.Pod](),
	KindJob:           reflect.TypeFor[batchv1.Job](),
}

// KindOf returns the kind of an object, which is the name of its type.
func KindOf(o client.Object) Kind { return knownKind(reflect.TypeOf(o).Elem()) }

func knownKind(t reflect.Type) Kind {
	k := Kind(t.Name())
	if goTypes[k] != t {
		panic(fmt.Sprintf("no cluster has a %s", t))
	}
	return k
}

// kindIn returns the kind of an object, which may be one whose history no Server keeps.
func kindIn(o client.Object) Kind {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return Kind(u.GetKind())
	}
	return Kind(reflect.TypeOf(o).Elem().Name())
}

// NewObject returns an empty object of a kind.
func NewObject(k Kind) client.Object {
	return reflect.New(goTypes[k]).Interface().(client.Object)
}

// KindOfList returns the kind of a list's items, and a function that sets them to copies of objects.
func KindOfList(list client.ObjectList) (Kind, func([]client.Object)) {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	return knownKind(items.Type().Elem()), func(objects []client.Object) { setItems(items, objects) }
}

// setItems sets the items of a list to copies of objects.
func setItems(items reflect.Value, objects []client.Object) {
	copies := reflect.MakeSlice(items.Type(), 0, len(objects))
	for _, o := range objects {
		copies = reflect.Append(copies, reflect.ValueOf(o.DeepCopyObject()).Elem())
	}
	items.Set(copies)
}
