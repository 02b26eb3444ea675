package shard

import (
	"fmt"
	"maps"
	"slices"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// ProtectionNotStated returns which protection of a shard the spec neither requires nor switches off, and what to do; empty
// if there is none. A field is lost while an older release is installed that doesn't know it, and that release finds
// a protection that it doesn't know.
func ProtectionNotStated(shards []Observation, spec *v1beta1.MemcachedSpec) string {
	stated, seen := resources.Protections(spec), map[string]bool{}
	for i := range shards {
		s := &shards[i]
		texts := []string{s.Set.Spec.Template.Annotations[annotations.Protection]}
		for _, pod := range s.Pods {
			texts = append(texts, pod.Annotations[annotations.Protection])
		}
		for _, text := range texts {
			if seen[text] {
				continue
			}
			seen[text] = true
			has := agentwire.ParseProtections(text)
			for _, name := range slices.Sorted(maps.Keys(has)) {
				switch {
				case has[name] == agentwire.ProtectionOff || stated[name] != "":
				case name == agentwire.ProtectionAuth || name == agentwire.ProtectionTLS:
					return fmt.Sprintf("shard %s runs with %s %s, and the spec doesn't state spec.%[2]s; restore it, or set spec.%[2]s.mode to %[4]s to switch it off",
						s.Name, name, has[name], agentwire.ProtectionOff)
				default:
					return fmt.Sprintf("shard %s runs with %s %s, which this release of the operator doesn't know; install the release that you had, or a newer one",
						s.Name, name, has[name])
				}
			}
		}
	}
	return ""
}
