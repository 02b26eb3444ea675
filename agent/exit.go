package main

import (
	"errors"
	"os"
)

// exitError ends the agent with a status and a sentence for a person.
type exitError struct {
	status   int
	sentence string
}

func (e *exitError) Error() string { return e.sentence }

// exitStatus is the agent's exit status for an error; never 0.
func exitStatus(err error) int {
	var exit *exitError
	if errors.As(err, &exit) && exit.status > 0 {
		return exit.status
	}
	return 1
}

// writeTerminationLog leaves a text where the kubelet reads it into the
// container's status. Outside a pod there is no such file, and none is made.
func writeTerminationLog(path, text string) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	_, _ = file.WriteString(text)
	_ = file.Close()
}
