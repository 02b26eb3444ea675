package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"gocloud.dev/blob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/store"
)

// tellEvery is how often a line of the log tells of the progress.
const tellEvery = 5 * time.Second

// settings of a run.
type settings struct {
	task           taskFlags
	terminationLog string
	listen         string
	spool          string
}

// run does a Job's work, tells how it ended, and returns the exit code.
func run(action snapshotapi.Action, args []string, out, messages io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("snapshot "+string(action), flag.ContinueOnError)
	flags.SetOutput(messages)
	s.task.add(flags)
	flags.StringVar(&s.terminationLog, "termination-log", "/dev/termination-log", "`file` for how it ended, if it is there")
	flags.StringVar(&s.listen, "listen", ":"+strconv.Itoa(snapshotapi.Port), "`address` of /progress and /healthz; empty is none")
	flags.StringVar(&s.spool, "spool", "", "`folder` for what is too much for memory, by default "+snapshotapi.SpoolPath+" if it is there")
	if err := flags.Parse(args); err != nil || !s.task.given() {
		if err == nil {
			fmt.Fprintln(messages, "a task is missing: give -task or -task-file")
		}
		return exitUsage
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once

	log := slog.New(slog.NewTextHandler(messages, nil))
	outcome := s.attempt(ctx, action, log)
	log.Info("It has ended.", "peak memory bytes", peakMemory())
	return conclude(outcome, s.terminationLog, out, log)
}

// peakMemory returns the most memory that this process has held, in bytes; 0 where
// the system does not tell.
func peakMemory() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Maxrss << 10 // Linux counts in KiB
}

// attempt returns how the work ended.
func (s settings) attempt(ctx context.Context, action snapshotapi.Action, log *slog.Logger) snapshotapi.Outcome {
	task, err := s.task.read()
	if err != nil {
		return failed(snapshotapi.Outcome{}, err)
	}
	meter := &snapshot.Meter{}
	progress := func() snapshotapi.Progress { return meter.Progress(task.ID) }
	if s.listen != "" {
		listener, err := net.Listen("tcp", s.listen)
		if err != nil {
			log.Warn("Nobody can ask for the progress.", "reason", err)
		} else {
			defer serve(listener, progress)()
		}
	}
	defer tell(log, progress)()

	outcome, err := work(ctx, action, task, snapshot.Env{Spool: s.spoolFolder(), Meter: meter, Log: log})
	if err == nil {
		outcome.Reason = succeeded
		return outcome
	}
	if ctx.Err() != nil {
		err = errors.Join(errStopped, err)
	}
	return failed(outcome, err)
}

// work opens the store and does what is asked.
func work(ctx context.Context, action snapshotapi.Action, task snapshotapi.Task, env snapshot.Env) (snapshotapi.Outcome, error) {
	bucket, err := store.Open(ctx, task.Store)
	if err != nil {
		return snapshotapi.Outcome{}, err
	}
	defer bucket.Close()
	switch action {
	case snapshotapi.ActionSave:
		outcome, err := snapshot.Save(ctx, bucket, task, env)
		if err != nil {
			prune(task, env.Log)
		}
		return outcome, err
	case snapshotapi.ActionLoad:
		return snapshot.Load(ctx, bucket, task, env)
	default:
		return snapshotapi.Outcome{}, erase(ctx, bucket, task, env.Log)
	}
}

// erase deletes a snapshot, and the folders that are empty for it.
func erase(ctx context.Context, bucket *blob.Bucket, task snapshotapi.Task, log *slog.Logger) error {
	if err := snapshot.Delete(ctx, bucket, task.Path); err != nil {
		return err
	}
	prune(task, log)
	return nil
}

func prune(task snapshotapi.Task, log *slog.Logger) {
	if err := store.Prune(task.Store, task.Path); err != nil {
		log.Warn("Empty folders stay.", "reason", err)
	}
}
