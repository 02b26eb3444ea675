package shard

import (
	"fmt"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// UnsupportedVersion returns why a spec doesn't support the version of memcached that a shard runs, and what to do; empty if
// it does. The reference of an image, such as a digest, need not contain its version. A shard with another image
// than that of the spec is going to be updated.
func UnsupportedVersion(shards []Observation, image string, spec *v1beta1.MemcachedSpec) string {
	for i := range shards {
		s := &shards[i]
		if !s.StartRecorded || s.PodRevision.Image.Reference != image {
			continue
		}
		if why := resources.UnsupportedVersion(s.Last.Version, spec.TLS, spec.Auth); why != "" {
			return fmt.Sprintf("shard %s runs image %s: %s", s.Name, image, why)
		}
	}
	return ""
}
