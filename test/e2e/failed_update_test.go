package e2e

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestFailedUpdateChangesAtMostOneShardAndRollsItBack(t *testing.T) {
	t.Parallel()
	const size = 5000
	s := newSpace(t)
	image := func(reference string) func() *memcachedac.MemcachedSpecApplyConfiguration {
		return func() *memcachedac.MemcachedSpecApplyConfiguration { return suite.Small(2).WithImage(reference) }
	}
	t.Run("changes", func(t *testing.T) {
		for name, change := range map[string]suite.Failing{
			"version-that-is-not-there": {
				Spec: func() *memcachedac.MemcachedSpecApplyConfiguration {
					return suite.Small(2).WithVersion("1.6.999")
				},
				Reason: v1alpha1.ReasonImageCannotBePulled, Words: []string{"memcached:1.6.999", "no shard was changed"},
			},
			"not-memcached": {
				Spec: image(testImage), Reason: v1alpha1.ReasonImageUnusable, Words: []string{"is not memcached", "no shard was changed"},
			},
			"nothing-in-the-image": {
				Spec: image("docker.io/library/busybox:1"), Reason: v1alpha1.ReasonImageUnusable, Words: []string{"no memcached in this image"},
			},
			"arguments-that-memcached-rejects": {
				Spec: func() *memcachedac.MemcachedSpecApplyConfiguration {
					return suite.Small(2).WithExtraArgs("-o", "hash_algorithm=nonsense")
				},
				Reason: v1alpha1.ReasonUpdateFailed, Words: []string{"shard -0, which was rolled back", "hash_algorithm"}, Tried: true,
				Fix: func(s *suite.Space, name string) {
					s.Apply(name, suite.Small(2).WithExtraArgs("-o", "hash_algorithm=murmur3"))
				},
			},
			"version-that-rejects-its-arguments": {
				Spec: func() *memcachedac.MemcachedSpecApplyConfiguration {
					return suite.Small(2).WithVersion(versions[0]).WithExtraArgs("-o", "hash_algorithm=nonsense")
				},
				Reason: v1alpha1.ReasonImageUnusable, Words: []string{"does not start with its arguments", "hash_algorithm"},
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.In(t).Fails(name, size, change)
			})
		}
	})
	s.NoPreflightPods()
}
