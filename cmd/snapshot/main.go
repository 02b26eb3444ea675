package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/task"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// version is the operator's version, set by the linker: -X main.version=1.0.0.
var version = "dev"

const usage = `Usage:
  snapshot save [flags]      copy all items of a Memcached into a new snapshot
  snapshot load [flags]      copy the items of a snapshot into a Memcached
  snapshot delete [flags]    delete a snapshot
  snapshot inspect [flags]   print the content of a snapshot, or list the snapshots of a store
  snapshot version           print the version

Run "snapshot COMMAND -h" for the flags of a command. The credentials for S3 are
AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN in the environment, or
AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE.
`

const exitUsage = 2

func main() {
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// command runs a command line and returns the exit code.
func command(args []string, out, messages io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(messages, usage)
		return exitUsage
	}
	switch args[0] {
	case string(wire.ActionSave), string(wire.ActionLoad), string(wire.ActionDelete):
		return run(wire.Action(args[0]), args[1:], out, messages)
	case "inspect":
		return inspect(args[1:], out, messages)
	case "version":
		fmt.Fprintln(out, version)
		return 0
	}
	fmt.Fprint(messages, usage)
	return exitUsage
}

func newFlags(command string, text *string, messages io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("snapshot "+command, flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.StringVar(text, "task", "", "task as `JSON`")
	return flags
}

func run(action wire.Action, args []string, out, messages io.Writer) int {
	o := task.Options{Action: action}
	flags := newFlags(string(action), &o.Task, messages)
	flags.StringVar(&o.TerminationLog, "termination-log", "/dev/termination-log", "`file` for the outcome; it must exist")
	flags.StringVar(&o.Listen, "listen", ":"+strconv.Itoa(wire.Port), "`address` of /progress and /healthz; empty disables them")
	flags.StringVar(&o.SpoolDir, "spool", "", "`directory` for the names of keys (default "+wire.SpoolPath+" if it exists)")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	if o.Task == "" {
		fmt.Fprintln(messages, "no task: set -task")
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills the process
	return task.Run(ctx, o, out, slog.New(slog.NewTextHandler(messages, nil)))
}

func inspect(args []string, out, messages io.Writer) int {
	var text, location, path string
	var o format.InspectOptions
	flags := newFlags("inspect", &text, messages)
	flags.StringVar(&location, "store", "", "directory or `URL` of the store: s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION&ca=FILE")
	flags.StringVar(&path, "path", "", "`path` of the snapshot in the store; empty lists all snapshots")
	flags.BoolVar(&o.Chunks, "chunks", false, "list the chunks")
	flags.BoolVar(&o.Keys, "items", false, "list the items: keys, flags, expiry and size, but not values")
	flags.BoolVar(&o.Verify, "verify", false, "read all chunks and compare their checksums")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	var at wire.Store
	var err error
	switch {
	case text != "" && location == "" && path == "":
		var t wire.Task
		t, err = task.Parse(text)
		at, path = t.Store, t.Path
	case location != "" && text == "":
		at, err = store.Parse(location)
	default:
		err = errors.New("set -store and optionally -path, or a task")
	}
	if err != nil {
		fmt.Fprintln(messages, err)
		return exitUsage
	}
	if err := show(context.Background(), at, path, out, o); err != nil {
		fmt.Fprintln(messages, err)
		return wire.ExitFailed
	}
	return 0
}

func show(ctx context.Context, at wire.Store, path string, out io.Writer, o format.InspectOptions) error {
	bucket, err := store.Open(ctx, at)
	if err != nil {
		return err
	}
	defer bucket.Close()
	if path == "" {
		return format.List(ctx, bucket, out)
	}
	return format.Inspect(ctx, bucket, path, out, o)
}
