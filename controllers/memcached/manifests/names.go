package manifests

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// ShardName returns the name of a shard, which its ReplicaSet and Service bear.
func ShardName(memcached string, ordinal int) string {
	return memcached + "-" + strconv.Itoa(ordinal)
}

// Ordinal returns the ordinal of a shard from its name, and whether the name is
// one of a shard of that Memcached.
func Ordinal(memcached, shard string) (int, bool) {
	digits, ok := strings.CutPrefix(shard, memcached+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, true
}

// Server returns a shard's address for clients, as host:port. The name is without
// the cluster's domain, which the operator cannot know; pods resolve it all the same.
func Server(namespace, shard string) string {
	return fmt.Sprintf("%s.%s.svc:%d", shard, namespace, agentapi.MemcachedPort)
}

// Labels returns the labels of everything that belongs to a Memcached, and the
// selector of its pods.
func Labels(memcached string) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:      v1alpha1.NameValue,
		v1alpha1.LabelInstance:  memcached,
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
	}
}

// shardLabels returns the labels of what belongs to one shard.
func shardLabels(memcached string, ordinal int) map[string]string {
	labels := Labels(memcached)
	labels[v1alpha1.LabelShard] = strconv.Itoa(ordinal)
	return labels
}
