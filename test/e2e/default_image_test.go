package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// A release of the operator may have another default image. Other tests must not run beside this one, which changes it.
func TestMemcachedWithoutVersionFollowsTheDefaultImage(t *testing.T) {
	const size = 5000
	s := &space{suite.New(t)}
	const image = "docker.io/library/memcached:"
	version := versions[len(versions)/2]
	s.Apply("follows", suite.Small(2))
	s.Apply("next", suite.Small(1))
	s.Apply("pinned", suite.Small(1, suite.Version(defaultVersion)))
	s.Available("follows")
	s.Available("next")
	s.Available("pinned")
	kept := []*items.Set{s.Written("follows", 0, size), s.Written("follows", 1, size)}
	before, pinned := s.Lives("follows"), s.Lives("pinned")
	s.Finally(func(ctx context.Context) error { return k.UseMemcached(ctx, image+defaultVersion) })
	h := s.Follow("follows")
	s.Must(k.UseMemcached(s.Ctx, image+version))
	hasVersion := func(m *v1beta1.Memcached) error {
		if m.Status.Version != version || m.Status.Image != image+version {
			return fmt.Errorf("the status has version %s, image %s", m.Status.Version, m.Status.Image)
		}
		return nil
	}
	s.Await("follows", "memcached "+version, hasVersion)
	s.Updated("follows")
	restarts := map[string]int32{}
	for ordinal := range kept {
		restarts[cluster.ShardName("follows", ordinal)] = 1
	}
	s.Restarted("follows", before, restarts)
	h.InTurn(h.End(), "follows-0", "follows-1")
	for _, set := range kept {
		s.Holds(set)
	}
	s.Await("next", "memcached "+version, hasVersion) // after the first one
	s.Updated("next")
	s.Untouched("pinned", pinned)
}
