// Package index has lists from the manager's cache find what belongs together
// without a look at all that a namespace holds: thousands of Memcacheds may share
// one, and each would look at the objects of all others.
//
// A list names its index beside the labels or the names that it selects by anyway:
//
//	client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(labels), index.By(index.Instance, name))
//
// To a client that has no index, as one that reads from the API server, that says
// nothing, and the answer is the same.
package index

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// Index is what objects are found by.
type Index string

const (
	// Instance is the label of that name: of the Memcached or the Job that something
	// belongs to.
	Instance Index = "instance"
	// Memcached is the one that a backup or a restore is of.
	Memcached Index = "memcached"
	// Backup is the one that a restore names.
	Backup Index = "backup"
	// Schedule is the label that a backup got from it.
	Schedule Index = "schedule"
)

// indexes of a kind.
type indexes struct {
	kind client.Object
	by   map[Index]func(client.Object) string
}

func all() []indexes {
	instance := map[Index]func(client.Object) string{Instance: label(v1alpha1.LabelInstance)}
	return []indexes{
		{&appsv1.ReplicaSet{}, instance},
		{&corev1.Service{}, instance},
		{&policyv1.PodDisruptionBudget{}, instance},
		{&networkingv1.NetworkPolicy{}, instance},
		{&corev1.Pod{}, instance},
		{&v1alpha1.MemcachedBackup{}, map[Index]func(client.Object) string{
			Memcached: func(o client.Object) string { return o.(*v1alpha1.MemcachedBackup).Spec.Memcached.Name },
			Schedule:  label(v1alpha1.LabelSchedule),
		}},
		{&v1alpha1.MemcachedRestore{}, map[Index]func(client.Object) string{
			Instance:  label(v1alpha1.LabelInstance),
			Memcached: func(o client.Object) string { return o.(*v1alpha1.MemcachedRestore).Spec.Memcached.Name },
			Backup: func(o client.Object) string {
				if ref := o.(*v1alpha1.MemcachedRestore).Spec.Backup; ref != nil {
					return ref.Name
				}
				return ""
			},
		}},
	}
}

func label(name string) func(client.Object) string {
	return func(o client.Object) string { return o.GetLabels()[name] }
}

// Setup gives a cache the indexes.
func Setup(ctx context.Context, cache client.FieldIndexer) error {
	for _, of := range all() {
		for name, value := range of.by {
			err := cache.IndexField(ctx, of.kind, string(name), func(o client.Object) []string {
				if v := value(o); v != "" {
					return []string{v}
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("indexing %T by %s: %w", of.kind, name, err)
			}
		}
	}
	return nil
}

// Client returns a client that lists by the indexes. It must read from a cache that
// has them.
func Client(c client.Client) client.Client { return indexed{c} }

// By returns the option of a list for those objects only that an index has under a
// value. The list selects them by other options too.
func By(index Index, value string) client.ListOption { return by{index, value} }

type by struct {
	index Index
	value string
}

// ApplyToList implements client.ListOption, for clients without indexes.
func (by) ApplyToList(*client.ListOptions) {}

// indexed is a client whose reads come from a cache that has the indexes.
type indexed struct{ client.Client }

// List implements client.Reader.
func (c indexed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	options = slices.Clone(options)
	for i, option := range options {
		if by, ok := option.(by); ok {
			options[i] = client.MatchingFields{string(by.index): by.value}
		}
	}
	return c.Client.List(ctx, list, options...)
}
