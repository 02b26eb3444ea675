package process

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func TestItemsSurviveARestartOfTheContainer(t *testing.T) {
	t.Parallel()
	const size = 20_000
	a, b, c := pods.Oldest, pods.Middle, pods.Newest
	// All pairs of versions, upwards and downwards.
	for _, visits := range [][]string{{a, a, b, a}, {b, b, c, b}, {c, c, a, c}} {
		t.Run("from "+visits[0], func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			s.Memcached = pods.MemcachedPath(visits[0])
			if status := s.Run(); status.Start.Result != agentwire.StartCold || status.Version != visits[0] {
				t.Fatalf("the first start: %+v", status)
			}
			pods.Fill(t, s.Address(), size)
			for i, to := range visits[1:] {
				t.Run(fmt.Sprintf("%s to %s", visits[i], to), func(t *testing.T) {
					before := pods.Count(t, s.Address(), size)
					if before < size*9/10 {
						t.Fatalf("only %d items to begin with", before)
					}
					items := s.Status().Items
					s.StopContainer()
					s.Memcached = pods.MemcachedPath(to)
					status := s.Run()
					pods.WantWarm(t, status, items)
					if status.Version != to {
						t.Errorf("version %s, want %s", status.Version, to)
					}
					after := pods.Count(t, s.Address(), size)
					t.Logf("%d of %d items kept", after, before)
					if after*100 < before*99 {
						t.Errorf("%d of %d items kept, want 99%%", after, before)
					}
				})
			}
		})
	}
}

// shardOfOperator returns a shard of 64Mi with the operator's arguments and more, and the memory limit of its container.
func shardOfOperator(t *testing.T, version string, extra ...string) (*pods.Shard, resource.Quantity) {
	t.Helper()
	revision := resources.NewPodRevision(&v1beta1.MemcachedSpec{Memory: new(resource.MustParse("64Mi")), Config: v1beta1.MemcachedConfig{
		MaxItemSize: new(resource.MustParse("1Mi")), MaxConnections: new(int32(1024)), Threads: new(int32(4)), ExtraArgs: extra,
	}}, resources.Image{Reference: "memcached:" + version, Version: version})
	s := pods.NewShard(t)
	s.Memcached = pods.MemcachedPath(version)
	s.Annotate(agentwire.ArgumentsFile, strings.Replace(revision.ArgumentsText, `"11211"`, strconv.Quote(strconv.Itoa(s.Port)), 1))
	return s, revision.Resources.Limits[corev1.ResourceMemory]
}

// The operator adds pages to -m, by which a full shard stores as many items as memory has room for.
func TestFullShardWithTheOperatorsArgumentsKeepsItsItems(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		for _, extra := range [][]string{nil, {"-f", "1.05"}} {
			t.Run(version+strings.Join(extra, ""), func(t *testing.T) {
				t.Parallel()
				const perItem = 600 // bytes, of which 500 are the value
				s, _ := shardOfOperator(t, version, extra...)
				s.Run()
				pods.FillSized(t, s.Address(), 2*64<<20/perItem, perItem-100)
				full := s.Status().Items
				if full < 64<<20*95/100/perItem {
					t.Errorf("%d items of %d bytes are less than fit into 64Mi", full, perItem)
				}
				s.StopContainer()
				pods.WantWarm(t, s.Run(), full)
				s.Annotate(agentwire.RestartFile, "now")
				pods.WantWarm(t, s.WaitFor("the restart", func(status agentwire.Status) bool {
					return status.Restart == "now" && status.Phase == agentwire.PhaseServing
				}), full)
			})
		}
	}
}
