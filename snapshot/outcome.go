package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sort"
	"unicode/utf8"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

const (
	succeeded = v1alpha1.ReasonSucceeded
	// outcomeBytes is what the kubelet keeps of a termination message.
	outcomeBytes = 4096
)

// errStopped is why a run ended that got a signal.
var errStopped = errors.New("it was told to stop before its end")

// failed returns the outcome of a run that ended with an error; what else is known
// of it stays.
func failed(o snapshotapi.Outcome, err error) snapshotapi.Outcome {
	o.Reason, o.Final, o.Message = v1alpha1.ReasonJobFailed, false, err.Error()
	if errors.Is(err, errStopped) {
		// what followed from that is nobody's fault
		o.Message = errStopped.Error()
	} else if f := snapshotapi.AsFailure(err); f != nil {
		o.Reason, o.Final = f.Reason, f.Final
	}
	return o
}

// conclude tells how a run ended and returns the exit code.
func conclude(o snapshotapi.Outcome, terminationLog string, out io.Writer, log *slog.Logger) int {
	text := encode(o)
	fmt.Fprintf(out, "%s\n", text)
	// Not made if it is missing: a person has none.
	f, err := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Error("The operator is not told how it ended.", "reason", err)
	}
	switch {
	case o.Reason == succeeded:
		return 0
	case o.Final:
		return snapshotapi.ExitFinal
	default:
		return snapshotapi.ExitFailed
	}
}

// encode returns an outcome as JSON, its message shortened by as little as makes the
// kubelet keep all of it.
func encode(o snapshotapi.Outcome) []byte {
	whole := o.Message
	// By how much the text gets shorter depends on which runes are cut.
	cut := sort.Search(len(whole), func(cut int) bool {
		o.Message = shorten(whole, len(whole)-cut)
		return len(marshal(o)) <= outcomeBytes
	})
	o.Message = shorten(whole, len(whole)-cut)
	return marshal(o)
}

// marshal returns an outcome as JSON, as short as that can be.
func marshal(o snapshotapi.Outcome) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(o); err != nil && o.Snapshot != nil {
		o.Snapshot = nil // whose time is beyond the year 9999, which no clock tells
		return marshal(o)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// shorten cuts a text to n bytes at most, between runes, with an ellipsis for what
// went.
func shorten(text string, n int) string {
	const ellipsis = "…"
	if len(text) <= n {
		return text
	}
	n -= len(ellipsis)
	if n <= 0 {
		return ""
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + ellipsis
}
