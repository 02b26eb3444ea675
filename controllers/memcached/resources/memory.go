package resources

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

const mebibyte = 1 << 20

// volumeSlack is space in the memory volume for more than the items: memcached's metadata file, the
// agent's record of the last stop, and the file system's own blocks. In a volume smaller than its
// memory, memcached is killed by SIGBUS once the volume is full.
const volumeSlack = 16 * mebibyte

// Megabytes returns memcached's -m: the spec's memory in whole mebibytes.
func Megabytes(spec *v1alpha1.MemcachedSpec) int64 {
	return spec.Memory.Value() / mebibyte
}

// MemoryLimit returns the smallest memory limit, in bytes, with which the kernel doesn't kill a full
// memcached: items with their overhead, hash table, threads and agent, and the buffers of each
// connection. The items are in a memory volume, which counts towards the limit. The CRD's rule for
// resources.limits.memory has the same formula.
func MemoryLimit(spec *v1alpha1.MemcachedSpec) resource.Quantity {
	items := Megabytes(spec) * mebibyte
	return *resource.NewQuantity(items/100*110+48*mebibyte+1024*int64(*spec.MaxConnections), resource.BinarySI)
}

// volumeSize returns the size of the memory volume, in bytes.
func volumeSize(spec *v1alpha1.MemcachedSpec) resource.Quantity {
	return *resource.NewQuantity(Megabytes(spec)*mebibyte+volumeSlack, resource.BinarySI)
}
