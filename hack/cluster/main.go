package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cluster"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/node"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/olm"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

const usage = `cluster runs a real Kubernetes on this machine for tests and demos.

Usage: cluster COMMAND

  up                        start the cluster, or finish a start that was cut short
  down [--wipe]             stop the cluster; --wipe also deletes its data (objects, images, certificates)
  status                    what runs
  env [api] [process] [peers] [cluster]
                            build what tests need of an API server, of memcached, of other programs that use it, or of
                            the cluster (default all), and print export lines for a shell
  kubeconfig                print the path of the cluster's kubeconfig
  logs COMPONENT            print the log of a component of node1, such as kube-apiserver or audit

  node add [NODE]           start one more node (node2 … node5; default node2)
  node kill [NODE]          kill all processes of a node at once; its Node object stays
  node remove [NODE]        stop a node and delete its Node object

  olm up                    install the Operator Lifecycle Manager (v0) in the cluster that runs
  olmv1 up                  run OLM v1 (catalogd and operator-controller) beside the cluster that runs
  olmv1 down                stop OLM v1; what it installed stays

  load REF TAR              push an image archive (docker save) to the cluster's registry as REF
  load REF --dir DIR        push an image with the contents of a folder [--label K=V]...
  image build CONTEXT       build an image of a Dockerfile without a container daemon: -t REF -o TAR [-f DOCKERFILE]
                            [--build-arg K=V]... [--local-base]
  image push TAR REF        push an image archive to the registry that REF names

Needs Linux, root and, for what is missing on the machine, apt-get. Builds are kept in
$MEMCACHED_OPERATOR_CACHE, by default memcached-operator in the user's cache folder.
`

// errUsage is for wrong arguments.
var errUsage = errors.New("see cluster help")

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		if errors.Is(err, errUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("a command is missing: %w", errUsage)
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	case node.InitCommand, olm.V1InitCommand:
		if len(args) != 1 || os.Getpid() != 1 {
			return fmt.Errorf("%s is started by this program: %w", name, errUsage)
		}
		if name == node.InitCommand {
			return node.Init(args[0])
		}
		olm.V1Init(args[0])
		return nil
	}
	command, ok := commands[name]
	if !ok && len(args) > 0 {
		name, args = name+" "+args[0], args[1:]
		command, ok = commands[name]
	}
	if !ok {
		return fmt.Errorf("there is no command %q: %w", name, errUsage)
	}
	d, err := cache.Find()
	if err != nil {
		return err
	}
	return command(d, args)
}

type command func(cache.Dirs, []string) error

var commands = map[string]command{
	"up":          locked(plain(cluster.Up)),
	"down":        locked(down),
	"status":      plain(cluster.Status),
	"env":         printEnv,
	"kubeconfig":  plain(printKubeconfig),
	"logs":        logs,
	"node add":    locked(onNode(cluster.AddNode)),
	"node kill":   locked(onNode(node.Kill)),
	"node remove": locked(onNode(cluster.RemoveNode)),
	"olm up":      locked(plain(olm.Up)),
	"olmv1 up":    locked(plain(olm.V1Up)),
	"olmv1 down":  locked(plain(func(d cache.Dirs) error { return process.Stop(d, process.OLMv1) })),
	"load":        loadCommand,
	"image build": buildImage,
	"image push":  pushArchive,
}

// plain is a command without arguments.
func plain(do func(cache.Dirs) error) command {
	return func(d cache.Dirs, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("unexpected argument %q: %w", args[0], errUsage)
		}
		return do(d)
	}
}

// onNode is a command for one node, by default node2.
func onNode(do func(cache.Dirs, network.Node) error) command {
	return func(d cache.Dirs, args []string) error {
		if len(args) == 0 {
			args = []string{"node2"}
		}
		n, err := network.Worker(args[0])
		if err != nil || len(args) > 1 {
			return errors.Join(errUsage, err)
		}
		if err := process.CanRun(); err != nil {
			return err
		}
		return do(d, n)
	}
}

func down(d cache.Dirs, args []string) error {
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	wipe := flags.Bool("wipe", false, "forget the cluster's data too")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q: %w", rest[0], errUsage)
	}
	return cluster.Down(d, *wipe)
}

func logs(d cache.Dirs, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("logs takes one component: %w", errUsage)
	}
	return cluster.Logs(d, args[0])
}

// locked waits for other commands that start or stop nodes.
func locked(do command) command {
	return func(d cache.Dirs, args []string) error {
		unlock, err := cache.Lock(filepath.Join(d.Cache, "cluster.lock"))
		if err != nil {
			return err
		}
		defer unlock()
		return do(d, args)
	}
}

// parse accepts flags before, between and after the other arguments, which it returns.
func parse(flags *flag.FlagSet, args []string) ([]string, error) {
	flags.SetOutput(io.Discard) // the error says it all
	var rest []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", flags.Name(), err, errUsage)
		}
		if flags.NArg() == 0 {
			return rest, nil
		}
		rest = append(rest, flags.Arg(0))
		args = flags.Args()[1:]
	}
}
