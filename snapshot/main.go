package main

import (
	"fmt"
	"io"
	"os"

	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// version is the operator's version, set by the linker: -X main.version=1.0.0.
var version = "dev"

const usage = `usage:
  snapshot save [flags]      copy all items of a Memcached into a new snapshot
  snapshot load [flags]      copy the items of a snapshot into a Memcached
  snapshot delete [flags]    delete a snapshot
  snapshot inspect [flags]   print what is in a snapshot, or which ones a store has
  snapshot version           print the version

snapshot COMMAND -h tells of its flags. The credentials of S3 are AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment.
`

// exitUsage is the exit code of a call that says nothing to do.
const exitUsage = 2

func main() {
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// command does what the arguments ask for and returns the exit code.
func command(args []string, out, messages io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(messages, usage)
		return exitUsage
	}
	switch args[0] {
	case string(snapshotapi.ActionSave), string(snapshotapi.ActionLoad), string(snapshotapi.ActionDelete):
		return run(snapshotapi.Action(args[0]), args[1:], out, messages)
	case "inspect":
		return inspect(args[1:], out, messages)
	case "version":
		fmt.Fprintln(out, version)
		return 0
	}
	fmt.Fprint(messages, usage)
	return exitUsage
}
