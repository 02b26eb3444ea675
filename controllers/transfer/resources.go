package transfer

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	mebibyte = 1 << 20
	// defaultMemory in bytes is the memory limit of a Job for a small cache. About 15 MiB of it
	// are for each of four shards.
	defaultMemory = 128 * mebibyte
	// memoryShare of the cache's bytes is added to it for the list of chunks, of which there is
	// one for at least a mebibyte of items.
	memoryShare = 1 << 14
	// minSpool in bytes is the smallest volume for keys.
	minSpool = 256 * mebibyte
	// spooledShards is how many shards' keys a Job spools at a time.
	spooledShards = 4
	// spoolRequestShare of the volume is requested: values are mostly larger than keys.
	spoolRequestShare = 32
	// logSpace in bytes of the volume's limit is left for the pod's log, which counts as well.
	logSpace = 16 * mebibyte
)

// CacheSize is the size of the cache that a Job copies.
type CacheSize struct {
	// Shards, and the bytes of memory of each.
	Shards int64
	Memory int64
}

// CacheSizeOf returns the size of a Memcached: of the shards that a Job copies, since one that is paused, or whose spec is rejected, doesn't get another size.
func CacheSizeOf(m *v1beta1.Memcached) CacheSize {
	if m.Spec.Memory == nil {
		return CacheSize{}
	}
	return CacheSize{int64(resources.Listed(m)), m.Spec.Memory.Value()}
}

// jobResources returns the resources of a Job: the defaults, and what the user set. A key
// takes less space in the spool than in memcached's memory, so that the keys of a shard
// never exceed it.
func jobResources(r JobSpec, asShard bool) corev1.ResourceRequirements {
	bytes := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }
	limits := corev1.ResourceList{corev1.ResourceMemory: bytes(defaultMemory + r.Cache.Shards*r.Cache.Memory/memoryShare/mebibyte*mebibyte)}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: bytes(64 * mebibyte)}
	if r.Action == snapshotwire.ActionSave {
		spool := max(minSpool, min(r.Cache.Shards, spooledShards)*r.Cache.Memory)
		limits[corev1.ResourceEphemeralStorage] = bytes(spool)
		requests[corev1.ResourceEphemeralStorage] = bytes(max(64*mebibyte, spool/spoolRequestShare))
	}
	if shard := r.Basis.Resources; asShard && len(shard.Limits) > 0 {
		limits, requests = maps.Clone(shard.Limits), maps.Clone(shard.Requests)
	}
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	for name, request := range r.Resources.Requests { // a default must not be less than a request
		if limit, ok := limits[name]; ok && request.Cmp(limit) > 0 {
			limits[name] = request
		}
	}
	maps.Copy(limits, r.Resources.Limits)
	for name, request := range requests { // a default must not exceed a limit
		if limit, ok := limits[name]; ok && request.Cmp(limit) > 0 {
			requests[name] = limit
		}
	}
	maps.Copy(requests, r.Resources.Requests)
	return corev1.ResourceRequirements{Limits: limits, Requests: requests}
}

// goMemoryLimit returns at how much memory the program collects garbage more often.
func goMemoryLimit(r corev1.ResourceRequirements) string {
	limit := r.Limits.Memory().Value()
	if limit == 0 { // which Kubernetes takes for no limit
		return "off"
	}
	return fmt.Sprintf("%dMiB", max(1, limit/mebibyte*3/4))
}

// spoolBytes returns how much of its volume a save may use for keys.
func spoolBytes(r corev1.ResourceRequirements) int64 {
	return max(1, spoolLimit(r).Value()-logSpace)
}

// spoolLimit returns the size of the volume for keys.
func spoolLimit(r corev1.ResourceRequirements) *resource.Quantity {
	if limit, ok := r.Limits[corev1.ResourceEphemeralStorage]; ok {
		return &limit
	}
	return resource.NewQuantity(minSpool, resource.BinarySI)
}
