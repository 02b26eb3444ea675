package manifests

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

const mebibyte = 1 << 20

// volumeSlack is what the memory volume holds beside the items: memcached's file
// of metadata, the agent's record of the last stop, and the file system's own
// blocks. A volume smaller than memcached's memory ends it by SIGBUS once full.
const volumeSlack = 16 * mebibyte

// Megabytes returns memcached's -m: the spec's memory in whole mebibytes.
func Megabytes(spec *v1alpha1.MemcachedSpec) int64 {
	return spec.Memory.Value() / mebibyte
}

// MemoryLimit returns the least memory limit, in bytes, under which the kernel
// does not end a full memcached: items with their overhead, the hash table,
// threads and the agent, and the buffers of every connection. The items lie in a
// memory volume, which counts against the same limit. The CRD's rule for
// resources.limits.memory is the same formula.
func MemoryLimit(spec *v1alpha1.MemcachedSpec) resource.Quantity {
	items := Megabytes(spec) * mebibyte
	return *resource.NewQuantity(items/100*110+48*mebibyte+1024*int64(*spec.Connections), resource.BinarySI)
}

// volumeSize returns the size of the memory volume, in bytes.
func volumeSize(spec *v1alpha1.MemcachedSpec) resource.Quantity {
	return *resource.NewQuantity(Megabytes(spec)*mebibyte+volumeSlack, resource.BinarySI)
}
