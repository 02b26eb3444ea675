package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sort"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// maxOutcome is how many bytes the kubelet keeps of a termination message.
const maxOutcome = 4096

// errStopped is the error of a run that got a signal.
var errStopped = errors.New("the Job was stopped before it finished")

func failed(o wire.Outcome, err error) wire.Outcome {
	o.Reason, o.Final, o.Message = wire.ReasonJobFailed, false, err.Error()
	if errors.Is(err, errStopped) {
		// Other errors result from the signal.
		o.Message = errStopped.Error()
	} else if f := wire.AsFailure(err); f != nil {
		o.Reason, o.Final = f.Reason, f.Final
	}
	return o
}

// report writes an outcome and returns the exit code.
func report(o wire.Outcome, terminationLog string, out io.Writer, log *slog.Logger) int {
	encoded := encode(o)
	fmt.Fprintf(out, "%s\n", encoded)
	// Not created: it exists only in a container.
	f, err := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = f.Write(encoded)
		err = errors.Join(err, f.Close())
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Error("The outcome was not written to the termination log", "error", err)
	}
	switch {
	case o.Reason == wire.ReasonSucceeded:
		return 0
	case o.Final:
		return wire.ExitFinal
	default:
		return wire.ExitFailed
	}
}

// encode returns an outcome as JSON, with its message shortened no more than necessary
// for the kubelet.
func encode(o wire.Outcome) []byte {
	message := o.Message
	// How much shorter the JSON gets depends on the runes that are cut off.
	cut := sort.Search(len(message), func(cut int) bool {
		o.Message = text.Truncate(message, len(message)-cut)
		return len(marshal(o)) <= maxOutcome
	})
	o.Message = text.Truncate(message, len(message)-cut)
	return marshal(o)
}

// marshal returns an outcome as JSON without unnecessary bytes.
func marshal(o wire.Outcome) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(o); err != nil && o.Snapshot != nil {
		o.Snapshot = nil // its time is after the year 9999
		return marshal(o)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
