// Package v1beta1 is the first version of the API group cache.memcached-operator.io.
//
// It imports apimachinery and the core types only, so that clients can import it without the
// operator.
//
// +kubebuilder:object:generate=true
// +groupName=cache.memcached-operator.io
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "cache.memcached-operator.io", Version: "v1beta1"}

var schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Memcached{}, &MemcachedList{},
		&MemcachedBackup{}, &MemcachedBackupList{},
		&MemcachedScheduledBackup{}, &MemcachedScheduledBackupList{},
		&MemcachedRestore{}, &MemcachedRestoreList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = schemeBuilder.AddToScheme
