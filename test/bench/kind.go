package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// kind is a change whose cost is measured, with the defaults of its options.
type kind struct {
	// target of make, and name of the document and the chart.
	target   string
	variants []variant
	template string
	title    func(options) string
	// noun of the change.
	noun   string
	from   string
	items  int
	bytes  int
	rounds int
}

var (
	//go:embed document.md
	upgradeTemplate string
	//go:embed drain.md
	drainTemplate string
)

var upgrade = kind{
	target: "bench-upgrade", variants: upgradeVariants, template: upgradeTemplate, noun: "upgrade",
	title: func(o options) string {
		return fmt.Sprintf("An upgrade of memcached from %s to %s under load", o.from, o.to)
	},
	from: "1.6.38", items: shards * 10_000, rounds: 5,
}

var drain = kind{
	target: "bench-handover", variants: drainVariants, template: drainTemplate, noun: "eviction",
	title: func(options) string { return "Eviction of all pods under load" },
	items: 1_000_000, bytes: 500, rounds: 1,
}

// unreadPerShard is the number of items of a shard that the load does not read.
func (o options) unreadPerShard() int { return o.items / shards }

const (
	// itemBytes are those of an item besides its value, and looseShare is what slab classes waste at most.
	itemBytes  = 100
	looseShare = 1.25
	// leastMebibytes is the operator's default.
	leastMebibytes = 64
)

// mebibytes returns the memory for the items of a shard: more than all of them take, so that none is evicted.
func (o options) mebibytes() int {
	if o.bytes == 0 {
		return leastMebibytes
	}
	bytes := float64(o.unreadPerShard()) * float64(o.bytes+itemBytes) * looseShare
	return leastMebibytes + int(bytes)>>20
}

// drainVariants are measured in this order and compared with the first.
var drainVariants = []variant{
	{
		name: "this operator", change: "the pods of a Memcached with 3 shards are evicted; `spec.handover.mode` is Strict, the default",
		create: applyMemcached, upgrade: evict, upToDate: memcachedUpToDate,
	},
	{
		name: "mode Available", change: "the same with `spec.handover.mode: Available`",
		create: applyAvailable, upgrade: evict, upToDate: memcachedUpToDate,
	},
	{
		name: "mode Disabled", change: "the same with `spec.handover.mode: Disabled`",
		create: applyWithoutHandover, upgrade: evict, upToDate: memcachedUpToDate,
	},
	{
		name: "StatefulSet", change: "the pods of a StatefulSet with 3 replicas are evicted",
		create: createStatefulSet, upgrade: evict, upToDate: podsUpToDate,
	},
	{
		name: "Deployments", change: "the pods of 3 Deployments with 1 replica each are evicted",
		create: createDeployments, upgrade: evict, upToDate: podsUpToDate,
	},
}

// evictInterval is how long evict waits after a disruption budget rejected an eviction. kubectl waits 5 s.
const evictInterval = 500 * time.Millisecond

// evict evicts all pods as the drain of a node with all of them does, and waits until they no longer exist.
func evict(ctx context.Context, in space, _ string) error {
	var pods corev1.PodList
	if err := in.List(ctx, &pods, client.InNamespace(in.namespace)); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	left := map[string]bool{}
	for _, pod := range pods.Items {
		left[string(pod.UID)] = true
	}
	waiting := pods.Items
	return cluster.Eventually(ctx, stepTimeout, "evicting the pods", func(ctx context.Context) error {
		var rejected []corev1.Pod
		for _, pod := range waiting {
			err := in.Set.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
			switch {
			case apierrors.IsTooManyRequests(err):
				rejected = append(rejected, pod)
			case client.IgnoreNotFound(err) != nil:
				return fmt.Errorf("evicting pod %s: %w", pod.Name, err)
			}
		}
		if waiting = rejected; len(waiting) > 0 {
			time.Sleep(evictInterval)
			return fmt.Errorf("%d evictions were rejected", len(waiting))
		}
		var now corev1.PodList
		if err := in.List(ctx, &now, client.InNamespace(in.namespace)); err != nil {
			return err
		}
		for _, pod := range now.Items {
			if left[string(pod.UID)] {
				return fmt.Errorf("pod %s is still there", pod.Name)
			}
		}
		return nil
	})
}
