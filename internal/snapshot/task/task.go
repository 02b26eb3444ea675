// Package task runs a Job's task: it reads the task, serves progress over HTTP while
// package copy works, and reports the outcome as a termination message.
package task

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"syscall"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Parse returns a task. An invalid one is a final failure, since a retry gets the same.
func Parse(text string) (wire.Task, error) {
	var task wire.Task
	if err := json.Unmarshal([]byte(text), &task); err != nil {
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

// Options of a run.
type Options struct {
	Action wire.Action
	// Task as JSON.
	Task string
	// TerminationLog is an existing file for the outcome.
	TerminationLog string
	// Listen is the address of /progress and /healthz; empty means none.
	Listen string
	// SpoolDir is a directory for the names of keys. By default it is wire.SpoolPath if
	// that exists, otherwise the system's directory for temporary files.
	SpoolDir string
}

// Run runs a task until ctx is done, reports the outcome to out and to the termination
// log, and returns the exit code.
func Run(ctx context.Context, o Options, out io.Writer, log *slog.Logger) int {
	outcome := o.run(ctx, log)
	log.Info("Finished", "peakMemoryBytes", peakMemory())
	return report(outcome, o.TerminationLog, out, log)
}

// peakMemory returns the peak resident memory of this process in bytes; 0 means unknown.
func peakMemory() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Maxrss << 10 // Linux counts in KiB
}

func (o Options) run(ctx context.Context, log *slog.Logger) wire.Outcome {
	task, err := Parse(o.Task)
	if err != nil {
		return failed(wire.Outcome{}, err)
	}
	progress := &copy.Progress{}
	current := func() wire.Progress { return progress.Report(task.ID) }
	if o.Listen != "" {
		listener, err := net.Listen("tcp", o.Listen)
		if err != nil {
			log.Warn("Progress is not served", "error", err)
		} else {
			defer serve(listener, current)()
		}
	}
	logging, stop := context.WithCancel(ctx)
	defer stop()
	go logProgress(logging, log, current)
	outcome, err := perform(ctx, o.Action, task, copy.Options{SpoolDir: o.spoolDir(), Progress: progress, Log: log})
	if err == nil {
		outcome.Reason = wire.ReasonSucceeded
		return outcome
	}
	// A final failure stands: the signal came while the save deleted its chunks.
	if f := wire.AsFailure(err); ctx.Err() != nil && (f == nil || !f.Final) {
		err = errors.Join(errStopped, err)
	}
	return failed(outcome, err)
}

func (o Options) spoolDir() string {
	if o.SpoolDir != "" {
		return o.SpoolDir
	}
	if info, err := os.Stat(wire.SpoolPath); err == nil && info.IsDir() {
		return wire.SpoolPath
	}
	return ""
}

func perform(ctx context.Context, action wire.Action, task wire.Task, o copy.Options) (outcome wire.Outcome, err error) {
	bucket, err := store.Open(ctx, task.Store)
	if err != nil {
		return wire.Outcome{}, err
	}
	defer bucket.Close()
	switch action {
	case wire.ActionSave:
		if outcome, err = copy.Save(ctx, bucket, task, o); err == nil {
			return outcome, nil
		}
	case wire.ActionLoad:
		return copy.Load(ctx, bucket, task, o)
	default:
		if err := format.Delete(ctx, bucket, task.Path); err != nil {
			return wire.Outcome{}, err
		}
	}
	if pruned := store.Prune(task.Store, task.Path); pruned != nil {
		o.Log.Warn("Empty directories remain in the store", "error", pruned)
	}
	return outcome, err
}
