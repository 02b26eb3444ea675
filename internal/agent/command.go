package agent

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/insights"
	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

const usage = `usage:
  agent install DIR       copy this program to DIR/agent
  agent run [flags]       run memcached and preserve its items over planned stops
  agent preflight [flags] check that this image's memcached starts with given arguments
  agent hotkeys [-for 5s] print the keys that clients of this container's memcached read most
  agent connections       print which clients of this container's memcached have how many connections
  agent sample            print 2,000 keys of this container's memcached, in base64
  agent version           print the version
`

const (
	defaultTerminationLog = "/dev/termination-log"
	defaultDataDir        = "/var/lib/memcached"
)

// Command runs the agent with command-line arguments. Its error is a message for
// the user; ExitCode returns the exit code that belongs to it.
func Command(version string, args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "install":
		return install(args[1])
	case len(args) >= 1 && args[0] == "run":
		return run(version, args[1:])
	case len(args) >= 1 && args[0] == "preflight":
		return preflight(args[1:], out)
	case len(args) >= 1 && (args[0] == "hotkeys" || args[0] == "sample" || args[0] == "connections"):
		return printInsights(args[0], args[1:], out)
	case len(args) == 1 && args[0] == "version":
		_, err := fmt.Fprintln(out, version)
		return err
	}
	return &exitError{code: 2, message: usage}
}

func printInsights(command string, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("agent "+command, flag.ContinueOnError)
	dir := flags.String("data", defaultDataDir, "`directory` of the memory volume that stores the items")
	watch := insights.WatchTime
	if command == "hotkeys" {
		flags.DurationVar(&watch, "for", watch, fmt.Sprintf("how long to watch, at most %s", insights.MaxWatchTime))
	}
	if err := flags.Parse(args); err != nil {
		return usageError(err)
	}
	return insights.Print(out, *dir, command, watch)
}

func usageError(err error) error {
	return &exitError{code: 2, message: "invalid flags: " + err.Error()}
}

func run(version string, args []string) error {
	// The agent does little, and shares the container's memory with the items.
	runtime.GOMAXPROCS(1)
	memory.Limit()

	c := config{version: version, podUID: os.Getenv("POD_UID"), podIP: os.Getenv("POD_IP")}
	flags := flag.NewFlagSet("agent run", flag.ContinueOnError)
	flags.StringVar(&c.dataDir, "data", defaultDataDir, "`directory` of the memory volume that stores the items")
	flags.StringVar(&c.podInfoDir, "podinfo", "/etc/podinfo", "`directory` of the downward-API volume")
	flags.StringVar(&c.listen, "listen", fmt.Sprintf(":%d", wire.Port), "`address` of /status, /healthz and /readyz")
	flags.StringVar(&c.metricsListen, "metrics-listen", "", "`address` of /metrics; empty: no metrics")
	flags.StringVar(&c.discoveryListen, "discovery-listen", "", "`address` at which clients request the addresses of all shards; empty: not at all")
	flags.StringVar(&c.secretVolumes.Certificate, "tls-dir", "", "`directory` of the Secret's volume with the certificate for TLS; empty: none")
	flags.StringVar(&c.secretVolumes.Users, "auth-dir", "", "`directory` of the Secret's volume with the users; empty: none")
	flags.IntVar(&c.loopbackPort, "loopback-port", wire.LoopbackPort, "`port` of the loopback interface where memcached serves the agent while clients use TLS")
	flags.StringVar(&c.service, "service", "", "`host:port` of the agent behind this shard's Service; empty: do not drain")
	flags.DurationVar(&c.drainTimeout, "drain-timeout", time.Minute, "maximum wait for another pod behind the Service")
	flags.StringVar(&c.handoverKey, "handover-key", "", "`file` with the key that the shard's pods share; empty: no handover of items between pods")
	flags.StringVar((*string)(&c.handoverMode), "handover-mode", string(wire.ModeStrict), "`mode` in which this pod receives items: Strict or Available")
	flags.StringVar(&c.handoverOwner, "handover-owner", "", "`UID` of this shard's Memcached: pods of another one with its name hand over nothing")
	flags.StringVar(&c.handoverListen, "handover-listen", fmt.Sprintf(":%d", wire.HandoverPort), "`address` at which another pod receives this pod's items")
	flags.StringVar(&c.scalingKey, "scaling-key", "", "`file` with the key that all shards share; empty: no moves of keys between shards")
	flags.IntVar(&c.ordinal, "ordinal", -1, "`number` of this shard, from 0, for moves of keys")
	flags.StringVar(&c.memcached, "memcached", "", "`path` of memcached; empty: search the image")
	format := flags.String("log-format", logText, "`format` of the log: text or json")
	flags.StringVar(&c.terminationLog, "termination-log", defaultTerminationLog, "`file` for the error")
	if err := flags.Parse(args); err != nil {
		return usageError(err)
	}
	if c.handoverMode != wire.ModeStrict && c.handoverMode != wire.ModeAvailable {
		return usageError(fmt.Errorf("-handover-mode %q is neither %s nor %s", c.handoverMode, wire.ModeStrict, wire.ModeAvailable))
	}
	log, err := newLog(os.Stderr, *format)
	if err != nil {
		return usageError(err)
	}

	err = supervise(c, log)
	if err != nil {
		log.Error("Agent failed", "error", err)
		writeTerminationLog(c.terminationLog, err.Error())
	}
	return err
}

// install copies this program to dir/agent, so that a container with another image
// can run it. It renames the copy last, so that no container runs a partial one.
func install(dir string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("opening this program: %w", err)
	}
	defer from.Close()

	partial, err := os.CreateTemp(dir, ".agent-")
	if err != nil {
		return fmt.Errorf("installing the agent: %w", err)
	}
	defer os.Remove(partial.Name())

	_, err = io.Copy(partial, from)
	if err == nil {
		err = partial.Chmod(0o755)
	}
	if closeErr := partial.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(partial.Name(), filepath.Join(dir, "agent"))
	}
	if err != nil {
		return fmt.Errorf("installing the agent: %w", err)
	}
	return nil
}

type exitError struct {
	code    int
	message string
}

func (e *exitError) Error() string { return e.message }

// ExitCode returns the agent's exit code for an error, which is never 0.
func ExitCode(err error) int {
	if exit, ok := errors.AsType[*exitError](err); ok && exit.code > 0 {
		return exit.code
	}
	if process.IsSlow(err) {
		return wire.ExitTimedOut
	}
	return 1
}

// writeTerminationLog writes a message that the kubelet copies into the container's
// status. Outside of a pod the file does not exist and is not created.
func writeTerminationLog(path, message string) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	_, _ = file.WriteString(message)
	_ = file.Close()
}
