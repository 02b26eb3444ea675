package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

const (
	// proofTrialBound is how long the trial of a proof may take. Nobody waits for an
	// answer of memcached meanwhile, and an image that was just pulled is slow to read.
	proofTrialBound = 15 * time.Second
	// proofBound is how long a proof may take in all. It is only met by a program
	// that does not even end when it is killed, as one that waits for a disk.
	proofBound = 30 * time.Second
)

// prove shows that the memcached of this image starts with given arguments. The
// proof, or the sentence that says why there is none, goes to the termination log;
// the proof to out as well, after whatever memcached printed.
func prove(args []string, out io.Writer) error {
	var memcached, data, arguments, terminationLog string
	flags := flag.NewFlagSet("agent prove", flag.ContinueOnError)
	flags.StringVar(&arguments, "arguments", "", "memcached's argument words as a JSON `array`")
	flags.StringVar(&data, "data", defaultData, "`folder` that may be written to; needed for arguments with a unix socket only")
	flags.StringVar(&memcached, "memcached", "", "`path` of memcached; empty: looked for")
	flags.StringVar(&terminationLog, "termination-log", defaultTerminationLog, "`file` for the proof, or the reason why there is none")
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	if err != nil {
		return usageError(err)
	}
	proof, err := within(proofBound, func() (agentapi.Proof, error) { return proofOf(memcached, data, arguments) })
	if err != nil {
		writeTerminationLog(terminationLog, err.Error())
		return err
	}
	text, err := json.Marshal(proof)
	if err != nil {
		return err
	}
	writeTerminationLog(terminationLog, string(text))
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

// proofOf looks at the memcached at path, or at the one that is found, and tries
// it with the arguments of an annotation's text.
func proofOf(path, data, text string) (agentapi.Proof, error) {
	memcached, err := imageMemcached(path)
	if err != nil {
		return agentapi.Proof{}, err
	}
	arguments, err := parseArguments(text)
	if err != nil {
		return agentapi.Proof{}, err
	}
	if err := try(memcached.path, data, arguments, proofTrialBound); err != nil {
		return agentapi.Proof{}, fmt.Errorf("memcached %s does not start with its arguments: %w", memcached.version, err)
	}
	return agentapi.Proof{Version: memcached.version}, nil
}

// within returns what f returns, or an error when that takes too long; f then goes
// on by itself.
func within[T any](bound time.Duration, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		value, err := f()
		results <- result{value, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-time.After(bound):
		var none T
		return none, errors.New("memcached neither answers nor ends: waited for " + bound.String())
	}
}
