package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/status"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Clients hash the names, so each list of them has the same.
func TestServersAreTheSameInAllLists(t *testing.T) {
	for domain, want := range map[string][]string{
		"":                {"cache-0.default.svc.cluster.local:11211", "cache-1.default.svc.cluster.local:11211"},
		"k8s.example.com": {"cache-0.default.svc.k8s.example.com:11211", "cache-1.default.svc.k8s.example.com:11211"},
	} {
		options := plantest.Options
		options.ClusterDomain = domain
		obs := plantest.Running(t, 2, func(s *v1beta1.MemcachedSpec) {
			s.Access.Binding.Mode, s.Access.Discovery.Mode = v1beta1.BindingSecret, v1beta1.DiscoveryElastiCache
		})
		for i := range obs.Names {
			key := resources.Key{Kind: resources.KindService, Name: obs.Names[i]}
			service := &corev1.Service{}
			service.Spec.ClusterIPs = []string{"10.96.0.1"}
			o := obs.Objects[key]
			o.APIObject = service
			obs.Objects[key] = o
		}
		p := plan.Make(obs, options)
		s := status.Make(obs, p, plan.Result{}, obs.Now)
		var discovered []string
		for _, patch := range p.Actions.Patch {
			metadata, _ := patch.Body["metadata"].(map[string]any)
			all, _ := metadata["annotations"].(map[string]any)
			if list, _ := all[annotations.Discovery].(string); list != "" && discovered == nil {
				for _, server := range plan.ParseShardList(list).Servers {
					discovered = append(discovered, strings.Replace(server, "|10.96.0.1|", ":", 1))
				}
			}
		}
		for name, got := range map[string][]string{
			"status.servers":    s.Servers,
			"binding's servers": strings.Split(string(p.Actions.Binding.Data["servers"]), ","),
			"binding's host":    {string(p.Actions.Binding.Data["host"]) + ":" + string(p.Actions.Binding.Data["port"]), want[1]},
			"discovery":         discovered,
			"endpoint":          {strings.Replace(s.Discovery.Endpoint, "-discovery", "-0", 1), want[1]},
		} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}
