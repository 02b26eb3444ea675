package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/bench/internal/workload"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const owner = client.FieldOwner("bench")

// applyMemcached creates a Memcached or changes its version. The other variants copy what the operator defaults here.
func applyMemcached(ctx context.Context, in space, version string) error {
	return applyWith(ctx, in, version, v1beta1.HandoverStrict, v1beta1.UpdateInPlace)
}

func applyAvailable(ctx context.Context, in space, version string) error {
	return applyWith(ctx, in, version, v1beta1.HandoverAvailable, v1beta1.UpdateHandover)
}

func applyWithoutHandover(ctx context.Context, in space, version string) error {
	return applyWith(ctx, in, version, v1beta1.HandoverDisabled, v1beta1.UpdateInPlace)
}

func applyWith(ctx context.Context, in space, version string, mode v1beta1.HandoverMode, updates v1beta1.UpdateType) error {
	return in.ApplyMemcached(ctx, client.ObjectKey{Namespace: in.Namespace, Name: workload.Name}, v1beta1.MemcachedSpec{
		Size:           new(int32(shards)),
		Version:        version,
		Memory:         new(in.Memory()),
		UpdateStrategy: v1beta1.UpdateStrategy{Type: updates, Handover: v1beta1.HandoverSpec{Mode: mode}},
	}, owner)
}

func memcachedUpToDate(ctx context.Context, in space, version string) error {
	m, err := in.Memcached(ctx, client.ObjectKey{Namespace: in.Namespace, Name: workload.Name})
	if err != nil {
		return err
	}
	return checkMemcached(m, version)
}

// checkMemcached returns an error unless a Memcached is available and all of its shards run the version.
func checkMemcached(m *v1beta1.Memcached, version string) error {
	if m.Status.ObservedGeneration != m.Generation {
		return errors.New("the change is not observed yet")
	}
	if err := cluster.Available(m); err != nil {
		return err
	}
	for ordinal := range shards {
		s, err := cluster.Shard(m, ordinal)
		if err != nil {
			return err
		}
		if s.Version != version || !s.UpToDate || !s.Ready {
			return fmt.Errorf("shard %s: version %s, current %t, ready %t", s.Name, s.Version, s.UpToDate, s.Ready)
		}
	}
	return nil
}

// evictInterval is how long evict waits after a disruption budget rejected an eviction. kubectl waits 5 s.
const evictInterval = 500 * time.Millisecond

// evict evicts all pods as the drain of a node with all of them does, and waits until they no longer exist.
func evict(ctx context.Context, in space, _ string) error {
	var pods corev1.PodList
	if err := in.List(ctx, &pods, client.InNamespace(in.Namespace)); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	left := map[string]bool{}
	for _, pod := range pods.Items {
		left[string(pod.UID)] = true
	}
	waiting := pods.Items
	return cluster.Eventually(ctx, "evicting the pods", func(ctx context.Context) error {
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
		if err := in.List(ctx, &now, client.InNamespace(in.Namespace)); err != nil {
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
