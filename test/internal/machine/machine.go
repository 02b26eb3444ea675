// Package machine describes the machine of a benchmark.
package machine

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Describe describes the machine of a cluster, without anything that identifies its owner.
func Describe(ctx context.Context, c *cluster.Cluster) (string, error) {
	version, err := c.Set.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return "", fmt.Errorf("listing nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return "", fmt.Errorf("the cluster has no node")
	}
	return textOf(version.GitVersion, nodes.Items, runtime.NumCPU(), os.Getenv("MEMCACHED_OPERATOR_CLUSTER") != ""), nil
}

// textOf describes a cluster by its first node, and where the load runs: on the same machine if the cluster is local.
func textOf(kubernetes string, nodes []corev1.Node, cores int, local bool) string {
	node := nodes[0].Status
	info := node.NodeInfo
	// the suffix names the distributor
	kernel, _, _ := strings.Cut(info.KernelVersion, "-")
	text := fmt.Sprintf("Kubernetes %s on %s of %s cores and %d GiB of memory, Linux %s, %s.",
		kubernetes, count(len(nodes), "node"), node.Capacity.Cpu(), gibibytes(node.Capacity.Memory().Value()), kernel, strings.Replace(info.ContainerRuntimeVersion, "://", " ", 1))
	if local {
		return text + " Everything runs on that one machine, the load too, and memcached is Debian's."
	}
	return text + fmt.Sprintf(" The load runs on a machine of %s.", count(cores, "core"))
}

// gibibytes rounds to the nearest, as a kernel reserves some memory.
func gibibytes(bytes int64) int64 { return (bytes + 1<<29) >> 30 }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
