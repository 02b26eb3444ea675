package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Local runs a command of the local cluster's program, such as "node", "add", and returns its output.
func Local(ctx context.Context, args ...string) (string, error) {
	program := os.Getenv("MEMCACHED_OPERATOR_CLUSTER")
	if program == "" {
		return "", errors.New(`MEMCACHED_OPERATOR_CLUSTER is not set: run this through make (make test, make test-e2e), or first eval "$(make -s env)"`)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cluster %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// Cordon cordons or uncordons a node.
func (c *Cluster) Cordon(ctx context.Context, node string, cordoned bool) error {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned)
	if err := c.Patch(ctx, o, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("cordoning %s: %w", node, err)
	}
	return nil
}

// Drain cordons a node and evicts the pods of a Memcached from it, as "kubectl drain" does with a pod selector: all at
// once, and again while the disruption budget rejects the eviction.
func (c *Cluster) Drain(ctx context.Context, node string, key client.ObjectKey) error {
	if err := c.Cordon(ctx, node, true); err != nil {
		return err
	}
	pods, err := c.Pods(ctx, key)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != node {
			continue
		}
		var failed error
		err := Eventually(ctx, "evicting pod "+pod.Name, func(ctx context.Context) error {
			failed = c.Set.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
			if apierrors.IsTooManyRequests(failed) {
				return failed
			}
			return nil
		})
		if err := errors.Join(err, client.IgnoreNotFound(failed)); err != nil {
			return err
		}
	}
	return Eventually(ctx, "draining "+node, func(ctx context.Context) error {
		var left corev1.PodList
		if err := c.List(ctx, &left, client.InNamespace(key.Namespace)); err != nil {
			return err
		}
		for _, pod := range left.Items {
			if pod.Spec.NodeName == node {
				return fmt.Errorf("pod %s is still there", pod.Name)
			}
		}
		return nil
	})
}
