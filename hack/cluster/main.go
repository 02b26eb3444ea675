package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cluster"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/node"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/olm"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

func main() {
	root := &cobra.Command{
		Use:   "cluster",
		Short: "Run a real Kubernetes on this machine for tests and demos",
		Long: `Cluster runs a real Kubernetes on this machine for tests and demos.

It needs Linux, root and, for what is missing on the machine, apt-get. Builds are kept in
$` + cache.Variable + `, by default memcached-operator in the user's cache folder.`,
		SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(
		plain("up", "start the cluster, or finish a start that was cut short", locked(cluster.Up)),
		down(),
		plain("status", "print what runs, and where its logs are", cluster.Status),
		&cobra.Command{Use: "logs COMPONENT", Short: "print the log of a component of node1, such as kube-apiserver or audit", Args: cobra.ExactArgs(1),
			RunE: inDirs(func(d cache.Dirs, args []string) error { return cluster.Logs(d, args[0]) })},
		plain("kubeconfig", "print the path of the cluster's kubeconfig", func(d cache.Dirs) error {
			_, err := fmt.Println(d.Kubeconfig())
			return err
		}),
		env(),
		group("node", "start and stop more nodes",
			onNode("add", "start a node", cluster.AddNode),
			onNode("kill", "kill all processes of a node at once; its Node object stays", node.Kill),
			onNode("remove", "stop a node and delete its Node object", cluster.RemoveNode)),
		group("olm", "run the Operator Lifecycle Manager (v0) in the cluster",
			plain("up", "install it in the cluster that runs", locked(olm.Up))),
		group("olmv1", "run OLM v1 (catalogd and operator-controller) beside the cluster",
			plain("up", "start it beside the cluster that runs", locked(olm.V1Up)),
			plain("down", "stop it; what it installed stays", locked(func(d cache.Dirs) error { return process.Stop(d, process.OLMv1) }))),
		load(),
		group("image", "build and push images without a container daemon", buildImage(), pushImage()),
	)
	if root.Execute() != nil {
		os.Exit(1)
	}
}

func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short}
	c.AddCommand(commands...)
	return c
}

// inDirs runs a command in the folders of this program.
func inDirs(do func(d cache.Dirs, args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		d, err := cache.Find()
		if err != nil {
			return err
		}
		return do(d, args)
	}
}

// plain is a command without arguments.
func plain(name, short string, do func(cache.Dirs) error) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: inDirs(func(d cache.Dirs, _ []string) error { return do(d) })}
}

// onNode is a command for one node, by default node2.
func onNode(name, short string, do func(cache.Dirs, network.Node) error) *cobra.Command {
	return &cobra.Command{Use: name + " [NODE]", Short: short + fmt.Sprintf(" (node2 to node%d, default node2)", len(network.Nodes)), Args: cobra.MaximumNArgs(1),
		RunE: inDirs(func(d cache.Dirs, args []string) error {
			n, err := network.Worker(append(args, "node2")[0])
			if err != nil {
				return err
			}
			return locked(func(d cache.Dirs) error { return do(d, n) })(d)
		})}
}

func down() *cobra.Command {
	var wipe bool
	c := plain("down", "stop the cluster", locked(func(d cache.Dirs) error { return cluster.Down(d, wipe) }))
	c.Flags().BoolVar(&wipe, "wipe", false, "delete its data too (objects, images, certificates)")
	return c
}

// locked waits for other commands that start or stop nodes.
func locked(do func(cache.Dirs) error) func(cache.Dirs) error {
	return func(d cache.Dirs) error {
		unlock, err := cache.Lock(filepath.Join(d.Cache, "cluster.lock"))
		if err != nil {
			return err
		}
		defer unlock()
		return do(d)
	}
}
