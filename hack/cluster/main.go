package main

import (
	"errors"
	"fmt"
	"os"
)

const usage = `cluster runs a real Kubernetes on this machine for tests and demos.

Usage: cluster COMMAND

  up                        start the cluster, or finish a start that was cut short
  down [--wipe]             end it; --wipe also forgets its data (objects, images, certificates)
  status                    what runs
  build                     build and download what up and env need, and start nothing
  env                       print export lines for a shell, after "build"
  kubeconfig                print the path of the cluster's kubeconfig
  logs [COMPONENT]          print a component's log; without a name, list the components

  node add [NODE]           start one more node (node2 … node5; default node2)
  node kill [NODE]          lose it: all its processes end at once, its Node object stays
  node remove [NODE]        end it and delete its Node object

  olm up                    install the Operator Lifecycle Manager (v0) in the cluster that runs
  olm build                 build what "olm up" needs, and install nothing
  olmv1 up                  run OLM v1 (catalogd and operator-controller) beside the cluster that runs
  olmv1 down                end it; what it installed stays
  olmv1 build               build what "olmv1 up" needs, and start nothing

  load REF TAR              push an image archive (docker save) to the cluster's registry as REF
  load REF --dir DIR        push an image made of a folder [--entrypoint PATH] [--user UID:GID] [--label K=V]...
  operator-image REF --source DIR [-o TAR]
                            build the operator's image from a checkout, without a daemon; push it and
                            write it to TAR

  help                      this text

Needs Linux, root and, for what is missing on the machine, apt-get. Builds are kept in
$MEMCACHED_OPERATOR_CACHE, by default memcached-operator in the user's cache folder.
`

// errUsage marks an error for which the usage is printed as well.
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
	case nodeInitCommand:
		return nodeInit(args)
	case olmv1InitCommand:
		return olmv1Init(args)
	}
	command, ok := commands[name]
	if !ok {
		return fmt.Errorf("there is no command %q: %w", name, errUsage)
	}
	d, err := findDirs()
	if err != nil {
		return err
	}
	return command(d, args)
}

var commands = map[string]func(dirs, []string) error{
	"up":             upCommand,
	"down":           downCommand,
	"status":         statusCommand,
	"build":          buildCommand,
	"env":            envCommand,
	"kubeconfig":     kubeconfigCommand,
	"logs":           logsCommand,
	"node":           nodeCommand,
	"olm":            olmCommand,
	"olmv1":          olmv1Command,
	"load":           loadCommand,
	"operator-image": operatorImageCommand,
}

// noArguments is an error when there are any.
func noArguments(command string, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument, got %q: %w", command, args[0], errUsage)
	}
	return nil
}
