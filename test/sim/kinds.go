package sim

import (
	"fmt"

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
	jobKind           kind = "Job"
)

// kinds in the order in which the world goes through them.
var kinds = []kind{memcachedKind, backupKind, restoreKind, replicaSetKind, serviceKind, budgetKind, networkPolicyKind, podKind, jobKind}

func kindOf(o client.Object) kind {
	switch o.(type) {
	case *v1alpha1.Memcached:
		return memcachedKind
	case *v1alpha1.MemcachedBackup:
		return backupKind
	case *v1alpha1.MemcachedRestore:
		return restoreKind
	case *appsv1.ReplicaSet:
		return replicaSetKind
	case *corev1.Service:
		return serviceKind
	case *policyv1.PodDisruptionBudget:
		return budgetKind
	case *networkingv1.NetworkPolicy:
		return networkPolicyKind
	case *corev1.Pod:
		return podKind
	case *batchv1.Job:
		return jobKind
	default:
		panic(fmt.Sprintf("the world has no %T", o))
	}
}

func newObject(k kind) client.Object {
	switch k {
	case memcachedKind:
		return &v1alpha1.Memcached{}
	case backupKind:
		return &v1alpha1.MemcachedBackup{}
	case restoreKind:
		return &v1alpha1.MemcachedRestore{}
	case replicaSetKind:
		return &appsv1.ReplicaSet{}
	case serviceKind:
		return &corev1.Service{}
	case budgetKind:
		return &policyv1.PodDisruptionBudget{}
	case networkPolicyKind:
		return &networkingv1.NetworkPolicy{}
	case podKind:
		return &corev1.Pod{}
	case jobKind:
		return &batchv1.Job{}
	default:
		panic(fmt.Sprintf("the world has no %s", k))
	}
}

// kindOfList returns the kind of a list's items, and a function that sets them.
func kindOfList(list client.ObjectList) (kind, func([]client.Object)) {
	switch list := list.(type) {
	case *v1alpha1.MemcachedList:
		return memcachedKind, setItems(&list.Items)
	case *v1alpha1.MemcachedBackupList:
		return backupKind, setItems(&list.Items)
	case *v1alpha1.MemcachedRestoreList:
		return restoreKind, setItems(&list.Items)
	case *appsv1.ReplicaSetList:
		return replicaSetKind, setItems(&list.Items)
	case *corev1.ServiceList:
		return serviceKind, setItems(&list.Items)
	case *policyv1.PodDisruptionBudgetList:
		return budgetKind, setItems(&list.Items)
	case *networkingv1.NetworkPolicyList:
		return networkPolicyKind, setItems(&list.Items)
	case *corev1.PodList:
		return podKind, setItems(&list.Items)
	case *batchv1.JobList:
		return jobKind, setItems(&list.Items)
	default:
		panic(fmt.Sprintf("the world lists no %T", list))
	}
}

// setItems returns what sets a list's items to copies of objects.
func setItems[T any](items *[]T) func([]client.Object) {
	return func(objects []client.Object) {
		*items = make([]T, len(objects))
		for i, o := range objects {
			(*items)[i] = *any(o.DeepCopyObject()).(*T)
		}
	}
}
