package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// taskFlags are where a task is told.
type taskFlags struct{ text, file string }

func (t *taskFlags) add(flags *flag.FlagSet) {
	flags.StringVar(&t.text, "task", "", "task as `JSON`")
	flags.StringVar(&t.file, "task-file", "", "`file` with the task as JSON")
}

// given says whether there is one.
func (t taskFlags) given() bool { return t.text != "" || t.file != "" }

// read returns the task. That it cannot be read is final: the next try has the same.
func (t taskFlags) read() (snapshotapi.Task, error) {
	var task snapshotapi.Task
	content := []byte(t.text)
	switch {
	case t.text != "" && t.file != "":
		return task, errors.New("give -task or -task-file, not both")
	case t.file != "":
		var err error
		if content, err = os.ReadFile(t.file); err != nil {
			return task, fmt.Errorf("reading the task: %w", err)
		}
	}
	if err := json.Unmarshal(content, &task); err != nil {
		return task, snapshotapi.FailFinally(v1alpha1.ReasonJobFailed, "reading the task: %w", err)
	}
	if task.ID == "" {
		return task, snapshotapi.FailFinally(v1alpha1.ReasonJobFailed, "the task has no id")
	}
	// The path is joined to the store's, which it must not leave.
	if !fs.ValidPath(task.Path) || task.Path == "." {
		return task, snapshotapi.FailFinally(v1alpha1.ReasonJobFailed, "the task's path %q is not a path below the store", task.Path)
	}
	return task, nil
}
