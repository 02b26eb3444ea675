// The agent is PID 1 of a memcached container. See package internal/agent.
package main

import (
	"fmt"
	"os"

	"github.com/memcached-operator/memcached-operator/internal/agent"
)

// version is the operator's version. The linker sets it: -X main.version=1.0.0.
var version = "dev"

func main() {
	if err := agent.Command(version, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(agent.ExitCode(err))
	}
}
