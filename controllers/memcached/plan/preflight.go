package plan

import (
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
)

// planPreflightCleanup deletes preflight pods that aren't needed any more.
func planPreflightCleanup(obs *observation.Observation, done bool) Actions {
	obsolete, retryIn := preflight.Obsolete(obs.PreflightPods, done, obs.UpdateRevision, obs.Now)
	a := Actions{RequeueAfter: retryIn}
	for _, pod := range obsolete {
		a.Delete = append(a.Delete, pod)
	}
	return a
}
