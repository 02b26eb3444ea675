package memcached

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// balance sets the address of a shard's load balancer, as its controller does.
func (env *testEnv) balance(shard string, addresses ...corev1.LoadBalancerIngress) {
	env.Helper()
	service := &corev1.Service{}
	env.read(resources.ExternalKey(shard).Name, service)
	service.Status.LoadBalancer.Ingress = addresses
	env.must(env.admin.Status().Update(env.ctx, service))
}

// wantExternal checks the status of the external addresses.
func (env *testEnv) wantExternal(m *v1alpha1.Memcached, servers []string, message string) {
	env.Helper()
	s := m.Status.External
	if s == nil || !slices.Equal(s.Servers, servers) || !strings.Contains(s.Message, message) || (message == "") != (s.Message == "") {
		env.Errorf("the status is %+v, want %q and %q", s, servers, message)
	}
}

func TestClientsOutsideTheClusterReachShardsByLoadBalancers(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 3, service: {type: LoadBalancer}, networkPolicy: {allowedClients: [{ipBlock: {cidr: 203.0.113.0/24}}]}}")
	cluster.wantExternal(cluster.get("cache"), nil, "3 of 3 shards have no external address, such as cache-0; check the events of the Service cache-0-ext")
	external := &corev1.Service{}
	cluster.read("cache-1-ext", external)
	if p := external.Spec.Ports; external.Spec.Type != corev1.ServiceTypeLoadBalancer || len(p) != 1 || p[0].Port != 11211 {
		t.Errorf("the Service is %+v", external.Spec)
	}

	// The place of an address is that of its shard, also while another one is missing.
	cluster.balance("cache-0", corev1.LoadBalancerIngress{IP: "192.0.2.10"}, corev1.LoadBalancerIngress{IP: "192.0.2.99"})
	cluster.balance("cache-2", corev1.LoadBalancerIngress{IP: "2001:db8::12"})
	cluster.wantExternal(cluster.converge(), []string{"192.0.2.10:11211"}, "1 of 3 shards have no external address, such as cache-1;")
	cluster.balance("cache-1", corev1.LoadBalancerIngress{Hostname: "balancer.example.com"})
	m := cluster.converge()
	cluster.wantExternal(m, []string{"192.0.2.10:11211", "balancer.example.com:11211", "[2001:db8::12]:11211"}, "")
	cluster.wantCondition(m, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	if want := resources.Server(cluster.namespace, "cache-1"); len(m.Status.Servers) != 3 || m.Status.Servers[1] != want {
		t.Errorf("inside the cluster, the addresses are %q, want %s", m.Status.Servers, want)
	}
	writes := cluster.writes.Load()
	if cluster.reconcileAndTick(); cluster.writes.Load() != writes {
		t.Error("the operator writes again, although nothing has changed")
	}

	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = new(int32(2)) })
	cluster.wantExternal(cluster.converge(), []string{"192.0.2.10:11211", "balancer.example.com:11211"}, "")
	if cluster.exists("cache-2-ext", &corev1.Service{}) || !cluster.exists("cache-1-ext", &corev1.Service{}) {
		t.Error("scaling in has deleted the wrong Services")
	}
}

func TestTypeOfTheServicesChangesNothingInsideTheCluster(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 2}")
	before := cluster.get("cache").Status
	addresses := func() (all []string) {
		for _, name := range []string{"cache", "cache-0", "cache-1"} {
			service := &corev1.Service{}
			cluster.read(name, service)
			all = append(all, string(service.UID), string(service.Spec.Type), service.Spec.ClusterIP)
		}
		return all
	}
	want := addresses()
	for _, serviceType := range []v1alpha1.ServiceType{v1alpha1.ServiceLoadBalancer, v1alpha1.ServiceClusterIP} {
		cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Service.Type = serviceType })
		s := cluster.converge().Status
		isExternal := serviceType == v1alpha1.ServiceLoadBalancer
		if (s.External != nil) != isExternal || cluster.exists("cache-0-ext", &corev1.Service{}) != isExternal || cluster.exists("cache-1-ext", &corev1.Service{}) != isExternal {
			t.Errorf("with type %s, the status is %+v, or there are other Services", serviceType, s.External)
		}
		if got := addresses(); !slices.Equal(got, want) || !slices.Equal(s.Servers, before.Servers) {
			t.Errorf("with type %s, the Services are %q, want %q", serviceType, got, want)
		}
		for i, shard := range s.Shards {
			if was := before.Shards[i]; !shard.StartedAt.Equal(was.StartedAt) || shard.PodName != was.PodName || s.Update != nil {
				t.Errorf("with type %s, shard %s has changed: %+v", serviceType, shard.Name, shard)
			}
		}
	}
}

func TestStatusReportsThatThePolicyAdmitsNoAddressOutsideTheCluster(t *testing.T) {
	const message = "the NetworkPolicy admits no client outside the cluster; add an ipBlock to spec.networkPolicy.allowedClients"
	for policy, want := range map[string]string{
		"{}":               message,
		"{mode: Open}":     "",
		"{mode: Disabled}": "",
		"{allowedClients: [{podSelector: {}}, {namespaceSelector: {}}]}":               message,
		"{allowedClients: [{podSelector: {}}, {ipBlock: {cidr: 203.0.113.0/24}}]}":     "",
		"{mode: Restricted, allowedClients: [{ipBlock: {cidr: \"2001:db8:1::/48\"}}]}": "",
	} {
		env := newEnv(t)
		env.create("cache", "{size: 1, service: {type: LoadBalancer}, networkPolicy: "+policy+"}")
		env.converge("cache")
		env.balance("cache-0", corev1.LoadBalancerIngress{IP: "192.0.2.10"})
		env.wantExternal(env.converge("cache"), []string{"192.0.2.10:11211"}, want)
	}
	env := newEnv(t)
	env.create("cache", "{size: 1, service: {type: LoadBalancer}}")
	env.wantExternal(env.converge("cache"), nil, "load balancers. "+message)
}

// A Memcached can have the name of another one's Service.
func TestExternalServiceOfAnotherMemcachedIsForeign(t *testing.T) {
	const other = "cache-0-ext"
	for _, names := range [][2]string{{"cache", other}, {other, "cache"}} {
		env := newEnv(t)
		for _, name := range names {
			env.create(name, "{size: 1, service: {type: LoadBalancer}}")
			env.converge(name)
		}
		first, second := env.converge(names[0]), env.converge(names[1])
		env.wantCondition(first, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
		env.wantCondition(second, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNameConflict, "Service "+other)
		service := &corev1.Service{}
		env.read(other, service)
		for _, name := range names { // which disables its own Service of that name, and deletes its shard
			env.change(name, func(m *v1alpha1.Memcached) {
				m.Spec.Service.Type, m.Spec.Size = v1alpha1.ServiceClusterIP, new(int32(0))
			})
		}
		env.converge(names[1])
		if after := (&corev1.Service{}); !env.exists(other, after) || after.UID != service.UID || after.ResourceVersion != service.ResourceVersion {
			t.Errorf("%s has changed or deleted the Service of %s", names[1], names[0])
		}
	}
}
