package memcached

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// bindingPlan is what workloads are bound to.
type bindingPlan struct {
	// status to report until the Secret was written; nil without spec.binding.
	status *v1alpha1.BindingStatus
	// size is the number of shards in the Secret.
	size    int32
	actions Actions
}

// observeBinding reads the Secret when the status says that it exists with another list. The operator needs no right to
// read Secrets otherwise: a user grants it for this one.
func (r observer) observeBinding(ctx context.Context, obs *observation) error {
	m := obs.memcached
	if !m.Spec.Binding.Enabled || m.Status.Binding == nil || !bindingIsOutdated(m) {
		return nil
	}
	secret := &corev1.Secret{}
	exists, err := r.lookUp(ctx, m.Namespace, v1alpha1.BindingSecretName(m.Name), secret)
	if obs.bindingForbidden = apierrors.IsForbidden(err); obs.bindingForbidden {
		return nil
	}
	if exists {
		obs.binding = object{secret, ownershipOf(m, secret)}
	}
	return err
}

// bindingIsOutdated reports whether the Secret lists other shards than it should. New shards are listed when all are ready.
func bindingIsOutdated(m *v1alpha1.Memcached) bool {
	was, size := m.Status.Binding, *m.Spec.Size
	return was == nil || was.Name == "" || size < was.Size || size > was.Size && m.Status.ReadySize == size
}

// planBinding creates the Secret, or updates the one that was read: it keeps its password.
func planBinding(obs *observation, build *resources.Builder) (p bindingPlan) {
	m := obs.memcached
	if !m.Spec.Binding.Enabled {
		return bindingPlan{}
	}
	p.status, p.size = &v1alpha1.BindingStatus{}, *m.Spec.Size
	if m.Status.Binding != nil {
		p.status.Name, p.status.Size = m.Status.Binding.Name, m.Status.Binding.Size
	}
	if !bindingIsOutdated(m) {
		return p
	}
	p.actions.RequeueAfter = conflictRecheck // no watch announces that the Secret or the operator's rights have changed
	secret := build.BindingSecret(int(p.size))
	switch have, _ := obs.binding.Object.(*corev1.Secret); {
	case obs.bindingForbidden:
		p.status.Message = fmt.Sprintf("the Secret %s exists, and the operator may not read or update it; grant it these rights, or delete the Secret to have it created with another password", secret.Name)
		if obs.now.Sub(obs.failed[keyOf(secret)].At).Abs() < conflictRecheck {
			return p
		}
	case have == nil:
	case obs.binding.owner == foreign || have.Type != secret.Type:
		p.status.Message = fmt.Sprintf("the Secret %s exists and isn't of this Memcached; rename or delete it", secret.Name)
		return p
	case obs.binding.owner == predecessors:
		p.status.Message = fmt.Sprintf("waiting until the Secret %s of a deleted Memcached is deleted", secret.Name)
		return p
	default:
		secret.UID, secret.ResourceVersion = have.UID, have.ResourceVersion
		secret.Data[v1alpha1.BindingPasswordKey] = have.Data[v1alpha1.BindingPasswordKey]
	}
	p.actions.Binding = secret
	return p
}

// result returns the status after the writes.
func (p bindingPlan) result(res result) *v1alpha1.BindingStatus {
	if secret := p.actions.Binding; secret != nil && res.applied[keyOf(secret)] {
		return &v1alpha1.BindingStatus{Name: secret.Name, Size: p.size}
	}
	return p.status
}
