package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/clusterdns"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

func TestThreeShardsServeAndAreInTheStatus(t *testing.T) {
	s := newSpace(t)
	m := s.Serve("cache", v1beta1.MemcachedSpec{Size: new(int32(3)), Memory: new(resource.MustParse("64Mi"))})

	for ordinal := range 3 {
		s.Holds(s.Written("cache", ordinal, 1000))
	}

	status := m.Status
	pods := s.Pods("cache")
	for _, field := range []struct{ name, is, want string }{
		{"phase", string(status.Phase), "Running"},
		{"version", status.Version, defaultVersion},
		{"image", status.Image, "docker.io/library/memcached:" + defaultVersion},
		{"size", fmt.Sprint(status.Size, status.ReadyShards), "3 3"},
		{"nodes", fmt.Sprint(status.Nodes), fmt.Sprint([]string{pods["cache-0"].Name, pods["cache-1"].Name, pods["cache-2"].Name})},
		{"servers", fmt.Sprint(status.Servers), strings.ReplaceAll("[cache-0.NS:11211 cache-1.NS:11211 cache-2.NS:11211]", "NS", s.Namespace+".svc."+clusterdns.Domain())},
	} {
		if field.is != field.want {
			t.Errorf("status.%s is %q, want %q", field.name, field.is, field.want)
		}
	}
	for ordinal := range 3 {
		shard := s.Shard(m, ordinal)
		if !shard.Ready || !shard.UpToDate || shard.Version != defaultVersion || shard.NodeName == "" || shard.StartResult != v1beta1.StartCold ||
			shard.StartTime == nil || shard.ContainerID == "" || shard.Message != "" {
			t.Errorf("status of a new shard is %+v", shard)
		}
	}

	for ordinal, server := range status.Servers {
		for _, name := range []string{server, fmt.Sprintf("cache-%d.cache.%s.svc:11211", ordinal, s.Namespace)} { // in the pod of these tests, which is in another namespace
			s.Eventually("an answer of "+name, func(ctx context.Context) error { return probe.Ask(ctx, name) })
		}
	}
}
