package sim

import (
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// kind of an object of the world.
type kind string

const (
	memcachedKind     kind = "Memcached"
	backupKind        kind = "MemcachedBackup"
	restoreKind       kind = "MemcachedRestore"
	replicaSetKind    kind = "ReplicaSet"
	serviceKind       kind = "Service"
	budgetKind        kind = "PodDisruptionBudget"
	networkPolicyKind kind = "NetworkPolicy"
	podKind           kind = "Pod"
	secretKind        kind = "Secret"
	jobKind           kind = "Job"
)

// kinds in the order in which the world goes through them.
var kinds = []kind{memcachedKind, backupKind, restoreKind, replicaSetKind, serviceKind, budgetKind, networkPolicyKind, secretKind, podKind, jobKind}

// goTypes of the objects of the kinds.
var goTypes = map[kind]reflect.Type{
	memcachedKind:     reflect.TypeFor[v1alpha1.Memcached](),
	backupKind:        reflect.TypeFor[v1alpha1.MemcachedBackup](),
	restoreKind:       reflect.TypeFor[v1alpha1.MemcachedRestore](),
	replicaSetKind:    reflect.TypeFor[appsv1.ReplicaSet](),
	serviceKind:       reflect.TypeFor[corev1.Service](),
	budgetKind:        reflect.TypeFor[policyv1.PodDisruptionBudget](),
	networkPolicyKind: reflect.TypeFor[networkingv1.NetworkPolicy](),
	secretKind:        reflect.TypeFor[corev1.Secret](),
	podKind:           reflect.TypeFor[corev1.Pod](),
	jobKind:           reflect.TypeFor[batchv1.Job](),
}

// kindOf returns the kind of an object, which is the name of its type.
func kindOf(o client.Object) kind { return knownKind(reflect.TypeOf(o).Elem()) }

func knownKind(t reflect.Type) kind {
	k := kind(t.Name())
	if goTypes[k] != t {
		panic(fmt.Sprintf("the world has no %s", t))
	}
	return k
}

func newObject(k kind) client.Object {
	return reflect.New(goTypes[k]).Interface().(client.Object)
}

// kindOfList returns the kind of a list's items, and a function that sets them to copies of objects.
func kindOfList(list client.ObjectList) (kind, func([]client.Object)) {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	return knownKind(items.Type().Elem()), func(objects []client.Object) {
		copies := reflect.MakeSlice(items.Type(), 0, len(objects))
		for _, o := range objects {
			copies = reflect.Append(copies, reflect.ValueOf(o.DeepCopyObject()).Elem())
		}
		items.Set(copies)
	}
}
