package e2e

import (
	"fmt"
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestRestartAnnotationRestartsInPlaceAndKeepsItems(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := newSpace(t)
	s.Apply("cache", suite.Small(2))
	s.Available("cache")
	set := s.Written("cache", 1, size)
	before := s.Lives("cache")
	for _, token := range []string{"first", "second"} {
		shard, err := k.Restart(s.Ctx, s.Key("cache"), 1, token, suite.Soon)
		s.Must(err)
		if shard.Start != v1alpha1.StartWarm || shard.ItemsBefore < size || shard.Items < shard.ItemsBefore {
			t.Errorf("after restart %s the shard's status is %+v", token, shard)
		}
		kept, err := set.Keep(1)
		s.Must(err)
		s.Event("cache", v1alpha1.EventShardKeptItems, "cache-1", fmt.Sprintf("%d of %d items", shard.Items, shard.ItemsBefore))
		t.Logf("restart %s: %d of %d items kept", token, kept, size)
	}
	s.Untouched("cache", before)
	s.Available("cache")
}
