package main

import (
	"context"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	shards = 3
	// name of the objects of a variant and prefix of its shards' names.
	name = "cache"
)

// variant is a way to run three shards, each with a stable address.
type variant struct {
	name string
	// change describes what a user does.
	change string
	create func(ctx context.Context, in space, version string) error
	// upgrade starts the change.
	upgrade func(ctx context.Context, in space, version string) error
	// upToDate returns an error until all shards run the version and serve, and nothing of another version is left.
	upToDate func(ctx context.Context, in space, version string) error
}

// space is the namespace of a variant.
type space struct {
	*cluster.Cluster
	namespace string
	// mebibytes for the items of a shard.
	mebibytes int
}

// upgradeVariants are measured in this order and compared with the first.
var upgradeVariants = []variant{
	{
		name: "this operator", change: "`spec.version` of a Memcached with 3 shards is changed",
		create: applyMemcached, upgrade: applyMemcached, upToDate: memcachedUpToDate,
	},
	{
		name: "by handover", change: "the same with `spec.updateStrategy.type: Handover` and `spec.handover.mode: Available`",
		create: applyAvailable, upgrade: applyAvailable, upToDate: memcachedUpToDate,
	},
	{
		name: "StatefulSet", change: "the image of a StatefulSet with 3 replicas is changed (RollingUpdate)",
		create: createStatefulSet, upgrade: upgradeStatefulSet, upToDate: podsUpToDate,
	},
	{
		name: "Deployments", change: "the image of 3 Deployments with 1 replica each is changed, all at once as `kubectl apply` and Helm do (RollingUpdate)",
		create: createDeployments, upgrade: upgradeDeployments, upToDate: podsUpToDate,
	},
}
