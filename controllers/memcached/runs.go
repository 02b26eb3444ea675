package memcached

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// Kinds of what a Memcached has done by other controllers.
const (
	kindRestore manifests.Kind = "MemcachedRestore"
	kindBackup  manifests.Kind = "MemcachedBackup"
)

// observeRuns reads the restores and backups that are of concern: those that were
// made for this Memcached and, once a shard was lost, all backups of it.
func (r *Reconciler) observeRuns(ctx context.Context, seen *observed) error {
	m := seen.memcached
	var restores v1alpha1.MemcachedRestoreList
	if err := r.list(ctx, m, &restores, manifests.Labels(m.Name)); err != nil {
		return err
	}
	seen.restores = map[string]object{}
	for i := range restores.Items {
		seen.restores[restores.Items[i].Name] = object{&restores.Items[i], ownershipOf(m, &restores.Items[i])}
	}
	if b := m.Status.Bootstrap; isBootstrapping(b) && seen.restores[b.Restore].Object == nil {
		restore := &v1alpha1.MemcachedRestore{}
		found, err := r.lookUp(ctx, m.Namespace, b.Restore, restore)
		if err != nil {
			return err
		}
		if found {
			seen.restores[b.Restore] = object{restore, ownershipOf(m, restore)}
		}
	}
	if err := r.observeBackups(ctx, seen); err != nil {
		return err
	}
	return r.observeFinal(ctx, seen)
}

// lookUp reads an object that the cache may not hold yet, and says whether it exists.
func (r *Reconciler) lookUp(ctx context.Context, namespace, name string, o client.Object) (bool, error) {
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking up %T %s: %w", o, name, err)
	}
	return err == nil, nil
}

// create makes what the plan has made by other controllers. One that exists
// meanwhile is seen at the next look.
func (r *Reconciler) create(ctx context.Context, p plan, a *applied) {
	for _, o := range p.creates {
		err := r.Client.Create(ctx, o, client.FieldOwner(v1alpha1.ManagedByValue))
		switch {
		case apierrors.IsAlreadyExists(err):
			a.outrun = true
		case err != nil:
			failures := len(a.failures)
			if a.add(manifests.Key{Kind: kindOf(o), Name: o.GetName()}, err); len(a.failures) > failures {
				a.unmade[o.GetName()] = true
			}
		}
	}
}

// ownedMeta returns the metadata of an object that goes with its Memcached.
func ownedMeta(m *v1alpha1.Memcached, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: name, Labels: manifests.Labels(m.Name),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, v1alpha1.GroupVersion.WithKind("Memcached"))},
	}
}

// memcachedOf returns the name of the Memcached that a restore or a backup is of.
func memcachedOf(o client.Object) string {
	switch o := o.(type) {
	case *v1alpha1.MemcachedRestore:
		return o.Spec.Memcached.Name
	case *v1alpha1.MemcachedBackup:
		return o.Spec.Memcached.Name
	default:
		return ""
	}
}
