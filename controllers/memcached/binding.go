package memcached

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// bindingInterval is after how long the operator tries again to create a Secret that exists: it may not read it, and learns
// from the answer whether it was deleted.
const bindingInterval = 5 * time.Minute

// planBinding creates the Secret, or updates the one that was read: it keeps its password.
func planBinding(obs *observation, build *resources.Builder) (p bindingPlan) {
	m := obs.memcached
	if !m.Spec.Binding.Enabled {
		return bindingPlan{}
	}
	p.status = &v1alpha1.BindingStatus{}
	if m.Status.Binding != nil {
		p.status.Name, p.status.Size = m.Status.Binding.Name, m.Status.Binding.Size
	}
	secret := build.BindingSecret(int(*m.Spec.Size))
	if !bindingIsOutdated(m) {
		left := bindingInterval - obs.now.Sub(obs.failed[keyOf(secret)].At).Abs()
		if p.actions.RequeueAfter = max(left, 0); left <= 0 && p.status.Size == *m.Spec.Size {
			p.actions.Binding = secret
		}
		return p
	}
	p.actions.RequeueAfter = conflictRecheck // no watch announces that the Secret or the operator's rights have changed
	switch have, _ := obs.binding.APIObject.(*corev1.Secret); {
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

// bindingPlan is what workloads are bound to.
type bindingPlan struct {
	// status to report until the Secret was written; nil without spec.binding.
	status  *v1alpha1.BindingStatus
	actions Actions
}

// bindingIsOutdated reports whether the Secret lists other shards than it should. New shards are listed when all are ready.
func bindingIsOutdated(m *v1alpha1.Memcached) bool {
	was, size := m.Status.Binding, *m.Spec.Size
	return was == nil || was.Name == "" || size < was.Size || size > was.Size && m.Status.ReadySize == size
}
