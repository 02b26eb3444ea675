package resources

import (
	"slices"
	"strconv"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Arguments returns memcached's arguments for a spec. The agent adds those of the restartable cache,
// whose path only it knows. UDP is off: it has been used to amplify attacks.
func Arguments(spec *v1alpha1.MemcachedSpec) []string {
	return slices.Concat([]string{
		"-p", strconv.Itoa(agentwire.MemcachedPort),
		"-U", "0",
		"-m", strconv.FormatInt(Megabytes(spec), 10),
		"-c", strconv.Itoa(int(*spec.MaxConnections)),
		"-t", strconv.Itoa(int(*spec.Threads)),
		"-I", strconv.FormatInt(spec.MaxItemSize.Value(), 10),
	}, spec.ExtraArgs)
}
