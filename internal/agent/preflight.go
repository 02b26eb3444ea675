package agent

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/secrets"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// preflightTimeout bounds the check if the program does not even exit when it is killed, for example
// while it waits for a disk.
const preflightTimeout = process.VersionTimeout + dryRunTimeout + time.Minute

// preflight checks that the image's memcached starts with given arguments. It writes
// the result, or the reason of the failure, to the termination log, and the result
// to out as well.
func preflight(args []string, out io.Writer) error {
	var memcached, arguments, terminationLog string
	flags := flag.NewFlagSet("agent preflight", flag.ContinueOnError)
	flags.StringVar(&arguments, "arguments", "", "memcached's argument words as a JSON `array`")
	flags.StringVar(&memcached, "memcached", "", "`path` of memcached; empty: search the image")
	flags.StringVar(&terminationLog, "termination-log", defaultTerminationLog, "`file` for the result or the error")
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		return usageError(err)
	}
	var text []byte
	err = callWithTimeout(preflightTimeout, func() error {
		found, err := process.Find(memcached)
		if err == nil {
			err = checkImage(found, arguments)
		}
		if err == nil {
			text, err = json.Marshal(wire.Preflight{Version: found.Version})
		}
		return err
	})
	if err != nil {
		writeTerminationLog(terminationLog, err.Error())
		return err
	}
	writeTerminationLog(terminationLog, string(text))
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

// checkImage runs memcached with the arguments of an annotation's text.
func checkImage(found process.Binary, text string) error {
	arguments, err := cmdline.Parse(text)
	if err != nil {
		return err
	}
	memcached := binary{Binary: found}
	remove, err := memcached.addThrowawaySecrets()
	if err != nil {
		return err
	}
	defer remove()
	err = dryRun(memcached, arguments, dryRunTimeout)
	if err != nil && !process.IsSlow(err) {
		err = fmt.Errorf("memcached %s does not start with its arguments: %w", memcached.Version, err)
	}
	return err
}

// addThrowawaySecrets lets memcached start with TLS and authentication in a pod without their Secrets.
func (b *binary) addThrowawaySecrets() (remove func(), err error) {
	dir, err := os.MkdirTemp("/dev/shm", "preflight-") // the root file system is read-only
	if err != nil {
		dir, err = os.MkdirTemp("", "preflight-")
	}
	if err != nil {
		return nil, fmt.Errorf("creating a directory for a certificate: %w", err)
	}
	b.secrets, err = secrets.Throwaway(dir)
	return func() { _ = os.RemoveAll(dir) }, err
}

// callWithTimeout returns what f returns, or an error after the timeout, when f
// continues in the background.
func callWithTimeout(timeout time.Duration, f func() error) error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	select {
	case err := <-result:
		return err
	case <-time.After(timeout):
		return &process.SlowError{Action: "respond or exit", Within: timeout}
	}
}
