package status

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// The load balancer of a deleted Memcached, or of one that is being deleted, leads nowhere soon.
func TestOnlyTheMemcachedsOwnLoadBalancersHaveAddresses(t *testing.T) {
	for _, state := range []string{"absent", "ours", "terminating", "orphaned", "predecessors", "foreign"} {
		obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"ready", "none"})
		obs.Memcached.Spec.Access.External.Mode = v1beta1.ExternalLoadBalancer
		key := resources.ExternalKey("cache-0")
		if plantest.AddObject(obs, key, state); state != "absent" {
			obs.Objects[key].APIObject.(*corev1.Service).Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.10"}}
		}
		s := Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now)
		if has := len(s.External.Servers) == 1; has != (state == "ours") || has == strings.Contains(s.External.Message, "no external address") {
			t.Errorf("%s: %+v", state, s.External)
		}
	}
}
