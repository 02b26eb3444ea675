package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// A kill leaves the lease, which the next operator waits for; a stop gives it
// back.
func TestAnOperatorThatIsKilledAtAnyMomentFinishesTheJob(t *testing.T) {
	s := newSpace(t)
	s.apply("cache", small(1))
	s.available("cache")
	first := s.lives("cache")
	for _, round := range []struct {
		size  int32
		grace int64 // of the operator's pod, in seconds; 0 is SIGKILL
	}{
		{4, 0},
		{8, 10},
		{2, 10},
		{5, 0},
	} {
		after := rand.N(700 * time.Millisecond)
		began := time.Now()
		s.apply("cache", small(round.size))
		time.Sleep(after)
		pods, err := k.OperatorPods(s.ctx)
		s.must(err)
		for _, pod := range pods {
			s.must(client.IgnoreNotFound(k.Delete(s.ctx, &pod, client.GracePeriodSeconds(round.grace))))
		}
		m := s.available("cache")
		t.Logf("to %d shards, operator ended %s after it was asked for with a grace of %d s: done after %s",
			round.size, after.Round(time.Millisecond), round.grace, time.Since(began).Round(100*time.Millisecond))
		if m.Status.Size != round.size || len(s.pods("cache")) != int(round.size) {
			t.Errorf("%d shards are told, %d pods are there, %d were asked for", m.Status.Size, len(s.pods("cache")), round.size)
		}
		s.untouched("cache", first)
	}
	s.must(k.OperatorReady(s.ctx))
}

func TestShardsServeOnWithoutTheOperatorAndItTakesThemOverUntouched(t *testing.T) {
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")
	kept := s.written("cache", 1, 1000)
	before := s.lives("cache")
	versions := s.podVersions("cache")
	stop := s.probes("cache", 2)
	image, err := k.OperatorImage(s.ctx)
	s.must(err)
	t.Cleanup(func() { // whatever happened: the other tests need it
		ctx := context.Background()
		if err := k.Install(ctx, image); err != nil {
			t.Error(err)
		}
		if err := k.UseNewest(ctx); err != nil {
			t.Error(err)
		}
	})

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.OperatorNamespace}}
	s.must(k.Delete(s.ctx, namespace))
	s.goneFromCluster(namespace)
	time.Sleep(2 * time.Second) // without an operator
	s.holds(kept)

	s.must(k.Install(s.ctx, image))
	s.must(k.UseNewest(s.ctx))
	s.scaleTo("cache", 3) // it acts again
	s.available("cache")
	stop()
	s.untouched("cache", before)
	s.holds(kept)
	now := s.podVersions("cache")
	delete(now, "cache-2")
	if !maps.Equal(versions, now) {
		t.Errorf("pods were written to: their versions were %v and are %v", versions, now)
	}
}

// podVersions returns the pods' resource versions, which change with every write.
func (s *space) podVersions(name string) map[string]string {
	s.Helper()
	versions := map[string]string{}
	for shard, pod := range s.pods(name) {
		versions[shard] = pod.ResourceVersion
	}
	return versions
}

func (s *space) goneFromCluster(o client.Object) {
	s.Helper()
	s.eventually(fmt.Sprintf("%T %s gone", o, o.GetName()), func(ctx context.Context) error {
		err := k.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil {
			return fmt.Errorf("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}
