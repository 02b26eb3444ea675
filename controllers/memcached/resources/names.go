package resources

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// ShardName returns the name of a shard, its ReplicaSet and its Service.
func ShardName(memcached string, ordinal int) string {
	return memcached + "-" + strconv.Itoa(ordinal)
}

// Ordinal returns the ordinal in a shard's name; false if it isn't the name of a shard of that
// Memcached.
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

// Server returns a shard's address for clients, as host:port. Pods resolve it without the cluster's
// domain, which the operator doesn't know.
func Server(namespace, shard string) string {
	return fmt.Sprintf("%s.%s.svc:%d", shard, namespace, agentwire.MemcachedPort)
}

// Labels returns the labels of all objects of a Memcached. They select its pods.
func Labels(memcached string) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:      v1alpha1.NameValue,
		v1alpha1.LabelInstance:  memcached,
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
	}
}

// shardLabels returns the labels of a shard's objects. They select its pod.
func shardLabels(memcached string, ordinal int) map[string]string {
	labels := Labels(memcached)
	labels[v1alpha1.LabelShard] = strconv.Itoa(ordinal)
	return labels
}
