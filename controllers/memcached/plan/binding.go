package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/serverclock"
)

// bindingInterval is after how long the operator tries again to create a Secret that exists: it may not read it, and learns
// from the answer whether it was deleted.
const bindingInterval = 5 * time.Minute

// planBinding creates the Secret, or updates an existing Secret and keeps the password in it.
func planBinding(obs *observation.Observation, build *resources.Builder) (p Binding) {
	m := obs.Memcached
	if !m.Spec.Access.Binding.IsEnabled() {
		return Binding{}
	}
	p.Status = &v1beta1.BindingStatus{}
	if m.Status.Binding != nil {
		p.Status.Name, p.Status.Size = m.Status.Binding.Name, m.Status.Binding.Size
	}
	age := serverclock.Age(obs.Now, obs.BindingTriedAt)
	isOutdated, secret := observation.BindingIsOutdated(m), build.BindingSecret()
	if !isOutdated {
		interval := bindingInterval
		if p.Status.Message = m.Status.Binding.Message; p.Status.Message != "" { // of the last attempt
			interval = ConflictRecheck
		}
		if age < interval {
			p.Actions.RequeueAfter = interval - age
		} else if int(p.Status.Size) == resources.SizesOf(m).Listed {
			p.Actions.Binding, p.Actions.BindingRepeats, p.Actions.RequeueAfter = secret, true, interval // the same answer changes no status, so no event follows
		}
		return p
	}
	p.Actions.RequeueAfter = ConflictRecheck // no watch announces that the Secret or the operator's rights have changed
	switch have, _ := obs.Binding.APIObject.(*corev1.Secret); {
	case obs.BindingForbidden:
		p.Status.Message = fmt.Sprintf("the operator isn't allowed to read or update the existing Secret %s; grant it these permissions, or delete the Secret: the operator then creates it with another password", secret.Name)
		if age < ConflictRecheck {
			return p
		}
	case have == nil:
	case obs.Binding.Owner == observation.Foreign || have.Type != secret.Type:
		p.Status.Message = fmt.Sprintf("the Secret %s exists and isn't managed by this Memcached; rename or delete it", secret.Name)
		return p
	case obs.Binding.Owner == observation.Predecessors:
		p.Status.Message = fmt.Sprintf("waiting until the Secret %s of a deleted Memcached is deleted", secret.Name)
		return p
	default:
		secret.UID, secret.ResourceVersion = have.UID, have.ResourceVersion
		secret.Data[v1beta1.BindingPasswordKey] = have.Data[v1beta1.BindingPasswordKey]
	}
	p.Actions.Binding = secret
	return p
}

// Binding is what workloads are bound to.
type Binding struct {
	// Status to report until the Secret was written; nil without spec.access.binding.
	Status  *v1beta1.BindingStatus
	Actions Actions
}
