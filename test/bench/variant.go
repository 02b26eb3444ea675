package main

import (
	"context"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	// shards of every variant.
	shards = 3
	// name of what a variant makes; its shards are called after it.
	name = "cache"
)

// variant is a way to run three shards, each with an address that stays.
type variant struct {
	id string
	// name for people.
	name string
	// change is what a person does to upgrade.
	change string
	// create makes the shards; they need not serve yet.
	create func(ctx context.Context, in space, version string) error
	// upgrade begins the change.
	upgrade func(ctx context.Context, in space, version string) error
	// settled returns nil once all shards are of a version, serve, and nothing of
	// another one is left; until then what is still to come.
	settled func(ctx context.Context, in space, version string) error
}

// space is the namespace in which a variant runs.
type space struct {
	*cluster.Cluster
	namespace string
}

// variants in the order in which they are measured and told; the others are
// compared with the first.
var variants = []variant{
	{
		id: "memcached", name: "this operator", change: "`spec.version` of a Memcached with 3 shards is changed",
		create: createMemcached, upgrade: upgradeMemcached, settled: memcachedSettled,
	},
	{
		id: "statefulset", name: "StatefulSet", change: "the image of a StatefulSet with 3 replicas is changed (RollingUpdate)",
		create: createStatefulSet, upgrade: upgradeStatefulSet, settled: statefulSetSettled,
	},
	{
		id: "deployment", name: "Deployments", change: "the image of 3 Deployments with 1 replica each is changed, all at once as `kubectl apply` and Helm do (RollingUpdate)",
		create: createDeployments, upgrade: upgradeDeployments, settled: deploymentsSettled,
	},
}

func ids() []string {
	var all []string
	for _, v := range variants {
		all = append(all, v.id)
	}
	return all
}
