package resources

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// APIObject is an object of the API server. A client takes it, and packages without a client import
// none for it.
type APIObject interface {
	metav1.Object
	runtime.Object
}

// APIList is a list of such objects.
type APIList interface {
	metav1.ListInterface
	runtime.Object
}

// OwnedKind is a kind whose objects a Memcached owns.
type OwnedKind struct {
	Kind   Kind
	object APIObject
	list   APIList
	// isApplied reports whether an object has the fields that the operator applies.
	isApplied func(want runtime.ApplyConfiguration, have APIObject) bool
	// metadata of an object to apply.
	metadata func(runtime.ApplyConfiguration) *metadata
}

type metadata = metav1ac.ObjectMetaApplyConfiguration

var ownedKinds = []OwnedKind{
	owned(KindReplicaSet, &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{}, appsv1ac.ExtractReplicaSet, func(a *appsv1ac.ReplicaSetApplyConfiguration) *metadata {
		return a.ObjectMetaApplyConfiguration
	}),
	owned(KindService, &corev1.Service{}, &corev1.ServiceList{}, corev1ac.ExtractService, func(a *corev1ac.ServiceApplyConfiguration) *metadata {
		return a.ObjectMetaApplyConfiguration
	}),
	owned(KindPodDisruptionBudget, &policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudgetList{}, policyv1ac.ExtractPodDisruptionBudget, func(a *policyv1ac.PodDisruptionBudgetApplyConfiguration) *metadata {
		return a.ObjectMetaApplyConfiguration
	}),
	owned(KindNetworkPolicy, &networkingv1.NetworkPolicy{}, &networkingv1.NetworkPolicyList{}, networkingv1ac.ExtractNetworkPolicy, func(a *networkingv1ac.NetworkPolicyApplyConfiguration) *metadata {
		return a.ObjectMetaApplyConfiguration
	}),
}

// OwnedKinds returns the kinds whose objects a Memcached owns.
func OwnedKinds() []OwnedKind { return ownedKinds }

func owned[T APIObject, A runtime.ApplyConfiguration](kind Kind, object T, list APIList, extract func(T, string) (A, error), metadataOf func(A) *metadata) OwnedKind {
	return OwnedKind{Kind: kind, object: object, list: list,
		isApplied: func(want runtime.ApplyConfiguration, have APIObject) bool {
			o, ok := have.(T)
			if !ok {
				return false
			}
			owned, err := extract(o, v1beta1.ManagedByValue)
			return err == nil && equality.Semantic.DeepEqual(owned, want)
		},
		metadata: func(a runtime.ApplyConfiguration) *metadata { return metadataOf(a.(A)) },
	}
}

// New returns an empty object.
func (k OwnedKind) New() APIObject { return k.object.DeepCopyObject().(APIObject) }

// NewList returns an empty list.
func (k OwnedKind) NewList() APIList { return k.list.DeepCopyObject().(APIList) }

// NewObject returns an empty object of an owned kind.
func NewObject(kind Kind) APIObject { return ownedKind(kind).New() }

// ownedKind returns an owned kind; nil if it isn't owned.
func ownedKind(kind Kind) *OwnedKind {
	i := slices.IndexFunc(ownedKinds, func(k OwnedKind) bool { return k.Kind == kind })
	if i < 0 {
		return nil
	}
	return &ownedKinds[i]
}

// IsApplied reports whether an existing object of an owned kind is up to date: the fields that
// the operator owns have the values that it would write. Fields with other owners don't count.
func (o Object) IsApplied(have APIObject) bool { return ownedKind(o.Key.Kind).isApplied(o.Apply, have) }

// absentVersion is the version that no object has: etcd counts from 1, which is the empty
// store's.
const absentVersion = "1"

// WithPreconditions makes the API server reject the write of an owned object unless it still
// has that UID and, if it isn't empty, that version or, without a UID, is still absent.
func (o Object) WithPreconditions(uid types.UID, version string) runtime.ApplyConfiguration {
	kind := ownedKind(o.Key.Kind)
	if kind == nil { // a preflight pod, which can't be changed
		return o.Apply
	}
	object := kind.metadata(o.Apply)
	if uid == "" {
		object.WithResourceVersion(absentVersion)
		return o.Apply
	}
	object.WithUID(uid)
	if version != "" {
		object.WithResourceVersion(version)
	}
	return o.Apply
}

// KeyOf returns the kind and name of an object that the operator creates or deletes.
func KeyOf(o APIObject) Key {
	var kind Kind
	switch o.(type) {
	case *appsv1.ReplicaSet:
		kind = KindReplicaSet
	case *policyv1.PodDisruptionBudget:
		kind = KindPodDisruptionBudget
	case *corev1.Service:
		kind = KindService
	case *networkingv1.NetworkPolicy:
		kind = KindNetworkPolicy
	case *corev1.Pod:
		kind = KindPod
	case *corev1.Secret:
		kind = KindSecret
	case *v1beta1.MemcachedRestore:
		kind = KindRestore
	case *v1beta1.MemcachedBackup:
		kind = KindBackup
	default:
		panic(fmt.Sprintf("the operator creates and deletes no %T", o))
	}
	return Key{Kind: kind, Name: o.GetName()}
}

// The kinds of objects that other controllers work on.
const (
	KindRestore Kind = "MemcachedRestore"
	KindBackup  Kind = "MemcachedBackup"
)
