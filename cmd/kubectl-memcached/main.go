// Kubectl-memcached is the plugin "kubectl memcached". It shows what the operator knows of a Memcached, and sets the annotations and
// creates the objects with which users request something of the operator.
//
// It has three rooms. Package cluster is the only one with a client: it reads, writes, and queries agents. Package screen
// computes what is shown, from values and without a client. Package command has the verbs: it parses, prints, and chooses the exit
// code.
//
// The plugin reads the objects of older and newer releases: it ignores fields that it doesn't know, and omits what isn't there. It
// changes objects by patches, so it keeps what it doesn't know.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // as kubectl logs in

	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/command"
)

// version is the release. The linker sets it: -X main.version=1.1.0.
var version = "dev"

func main() {
	os.Exit(command.Main(version, os.Args[1:]))
}
