package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// version is the operator's version, set by the linker: -X main.version=1.0.0.
var version = "dev"

const usage = `usage:
  agent install DIR     copy this program to DIR/agent
  agent run [flags]     run memcached and keep its items over planned stops
  agent prove [flags]   show that this image's memcached starts with given arguments
  agent version         print the version
`

// Defaults of the flags of run and prove.
const (
	defaultData           = "/var/lib/memcached"
	defaultTerminationLog = "/dev/termination-log"
)

func main() {
	if err := command(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitStatus(err))
	}
}

func command(args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "install":
		return install(args[1])
	case len(args) >= 1 && args[0] == "run":
		return run(args[1:])
	case len(args) >= 1 && args[0] == "prove":
		return prove(args[1:], out)
	case len(args) == 1 && args[0] == "version":
		_, err := fmt.Fprintln(out, version)
		return err
	}
	return &exitError{status: 2, sentence: usage}
}

func usageError(err error) error {
	return &exitError{status: 2, sentence: "the flags are listed above: " + err.Error()}
}

// run supervises memcached until a planned stop, which returns nil.
func run(args []string) error {
	// The agent does little, and every MiB is one less for items.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(25)
	debug.SetMemoryLimit(8 << 20)

	var c config
	flags := flag.NewFlagSet("agent run", flag.ContinueOnError)
	flags.StringVar(&c.data, "data", defaultData, "`folder` of the memory volume that holds the items")
	flags.StringVar(&c.podInfo, "podinfo", "/etc/podinfo", "`folder` of the downward-API volume")
	flags.StringVar(&c.listen, "listen", fmt.Sprintf(":%d", agentapi.Port), "`address` of /status, /healthz and /readyz")
	flags.StringVar(&c.service, "service", "", "`host:port` of the agent behind this shard's Service; empty: nobody to wait for")
	flags.DurationVar(&c.drainTimeout, "drain-timeout", time.Minute, "longest wait for another pod at the Service")
	flags.StringVar(&c.memcached, "memcached", "", "`path` of memcached; empty: looked for")
	flags.StringVar(&c.terminationLog, "termination-log", defaultTerminationLog, "`file` for the reason of an end")
	if err := flags.Parse(args); err != nil {
		return usageError(err)
	}
	c.podUID = os.Getenv("POD_UID")
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))

	err := supervise(c, log)
	if err != nil {
		log.Error("The agent ends.", "reason", err)
		writeTerminationLog(c.terminationLog, err.Error())
	}
	return err
}
