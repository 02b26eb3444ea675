package report

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Machine describes this machine, without anything that identifies its owner.
func Machine() (string, error) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", err
	}
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return "", fmt.Errorf("reading the memory of the machine: %w", err)
	}
	return fmt.Sprintf("machine of %d cores and %d GiB of memory, Linux %s", runtime.NumCPU(), gibibytes(int64(info.Totalram)*int64(info.Unit)), kernel(string(release))), nil //nolint:gosec // bytes of memory
}

// commit returns the abbreviated hash of the checkout's commit. Changes of documents change nothing that is measured.
func commit(ctx context.Context) (string, error) {
	root, err := cluster.Root()
	if err != nil {
		return "", err
	}
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output() //nolint:gosec // fixed arguments
		if err != nil {
			return "", fmt.Errorf("asking git for the commit: %w", err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	hash, err := git("rev-parse", "--short=8", "HEAD")
	if err != nil {
		return "", err
	}
	changes, err := git("status", "--porcelain", "--", ".", ":!docs", ":!README.md")
	if changes != "" {
		hash += " with uncommitted changes"
	}
	return hash, err
}

// Cluster describes a cluster by its first node, and where the load runs: on the same machine if the cluster is local.
func Cluster(ctx context.Context, c *cluster.Cluster) (string, error) {
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
	node, count := nodes.Items[0].Status, "1 node"
	if n := len(nodes.Items); n > 1 {
		count = fmt.Sprintf("%d nodes", n)
	}
	text := fmt.Sprintf("Kubernetes %s on %s of %s cores and %d GiB of memory, Linux %s, %s.", version.GitVersion, count, node.Capacity.Cpu(),
		gibibytes(node.Capacity.Memory().Value()), kernel(node.NodeInfo.KernelVersion), strings.Replace(node.NodeInfo.ContainerRuntimeVersion, "://", " ", 1))
	if os.Getenv("MEMCACHED_OPERATOR_CLUSTER") != "" {
		return text + " Everything runs on that one machine, the load too, and memcached is Debian's.", nil
	}
	return text + fmt.Sprintf(" The load runs on a machine of %d cores.", runtime.NumCPU()), nil
}

// kernel returns a kernel's release without its suffix, which names the distributor.
func kernel(release string) string {
	version, _, _ := strings.Cut(strings.TrimSpace(release), "-")
	return version
}

// gibibytes rounds to the nearest, as a kernel reserves some memory.
func gibibytes(bytes int64) int64 { return (bytes + 1<<29) >> 30 }

// InNamespace calls use with a new namespace, and deletes the namespace, also after an interrupt.
func InNamespace(ctx context.Context, c *cluster.Cluster, prefix string, use func(namespace string) error) error {
	namespace, err := c.CreateNamespace(ctx, prefix)
	if err != nil {
		return err
	}
	return errors.Join(use(namespace), deleteNamespace(context.WithoutCancel(ctx), c, namespace))
}

// deleteNamespace deletes a namespace and waits until it no longer exists. It deletes the Memcacheds first: a shard
// keeps serving until its Service no longer exists.
func deleteNamespace(ctx context.Context, c *cluster.Cluster, name string) error {
	if err := c.DeleteAllOf(ctx, &v1beta1.Memcached{}, client.InNamespace(name)); err != nil {
		return fmt.Errorf("deleting the Memcacheds of %s: %w", name, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Delete(ctx, namespace); err != nil {
		return fmt.Errorf("deleting namespace %s: %w", name, err)
	}
	return c.Gone(ctx, namespace)
}
