package agent

import (
	"errors"
	"os"
)

// exitError is an error for which the agent exits with a given code.
type exitError struct {
	code    int
	message string
}

func (e *exitError) Error() string { return e.message }

// ExitCode returns the agent's exit code for an error, which is never 0.
func ExitCode(err error) int {
	var exit *exitError
	if errors.As(err, &exit) && exit.code > 0 {
		return exit.code
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
