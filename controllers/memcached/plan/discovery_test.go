package plan

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

func TestListOfTheMostShardsWithTheLongestNamesFits(t *testing.T) {
	const size = 128
	m := &v1beta1.Memcached{}
	m.Namespace, m.Name = strings.Repeat("n", 63), strings.Repeat("m", 52)
	m.Spec.Size = new(int32(size))
	m.Spec.Access.Discovery.Mode = v1beta1.DiscoveryElastiCache
	obs := &observation.Observation{Memcached: m, Now: time.Unix(1_800_000_000, 0), Objects: map[resources.Key]observation.Object{}}
	states := make([]shard.State, size)
	for ordinal := range size {
		name := resources.ShardName(m.Name, ordinal)
		service := &corev1.Service{}
		service.Spec.ClusterIPs = []string{"2001:db8:1111:2222:3333:4444:5555:" + strconv.Itoa(6000+ordinal)}
		obs.Objects[resources.Key{Kind: resources.KindService, Name: name}] = observation.Object{APIObject: service}
		obs.Names = append(obs.Names, name)
		states[ordinal].Name, states[ordinal].IsReady = name, true
	}
	p := planDiscovery(obs, states, resources.Options{ClusterDomain: strings.Repeat("d", resources.MaxClusterDomain)})
	if p.Status.Size != size || len(p.list) < size*(52+63+39+resources.MaxClusterDomain) || len(p.list) > resources.MaxDiscoveryList {
		t.Errorf("the list has %d bytes, status %+v", len(p.list), p.Status)
	}
}
