// Package task runs a Job's task: it reads the task, serves progress over HTTP while
// package copy works, and reports the outcome as a termination message.
package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Source is where a task is read from: exactly one of its fields is set.
type Source struct {
	// JSON is the task itself, File the path of a file that contains it.
	JSON, File string
}

// Read returns the task. An invalid task is a final failure, since a retry reads the
// same one.
func (s Source) Read() (wire.Task, error) {
	var task wire.Task
	content := []byte(s.JSON)
	switch {
	case s.JSON != "" && s.File != "":
		return task, errors.New("set -task or -task-file, not both")
	case s.File != "":
		var err error
		if content, err = os.ReadFile(s.File); err != nil {
			return task, fmt.Errorf("reading the task: %w", err)
		}
	}
	if err := json.Unmarshal(content, &task); err != nil {
		return task, wire.FailFinally(wire.ReasonJobFailed, "reading the task: %w", err)
	}
	if task.ID == "" {
		return task, wire.FailFinally(wire.ReasonJobFailed, "the task has no id")
	}
	// The path is joined to the store's and must not leave it.
	if !fs.ValidPath(task.Path) || task.Path == "." {
		return task, wire.FailFinally(wire.ReasonJobFailed, "the task's path %q is not a path below the store", task.Path)
	}
	return task, nil
}
