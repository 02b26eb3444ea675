package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/store"
)

const storeForms = "`URL` of the store: a folder, or s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION&ca=FILE"

// manifest is the name of what is written last of a snapshot: docs/snapshot-format.md.
const manifest = "manifest.json"

// inspect prints what is in a snapshot, or in a store, and returns the exit code.
func inspect(args []string, out, messages io.Writer) int {
	var task taskFlags
	var place, name string
	var o snapshot.InspectOptions
	flags := flag.NewFlagSet("snapshot inspect", flag.ContinueOnError)
	flags.SetOutput(messages)
	task.add(flags)
	flags.StringVar(&place, "store", "", storeForms)
	flags.StringVar(&name, "path", "", "`path` of the snapshot in the store; empty lists the snapshots that are there")
	flags.BoolVar(&o.Chunks, "chunks", false, "list the chunks too")
	flags.BoolVar(&o.Keys, "items", false, "list the items too: keys, flags, expiry and size, not values")
	flags.BoolVar(&o.Verify, "verify", false, "read all of it and compare checksums")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	var at snapshotapi.Store
	var err error
	switch {
	case task.given() && place == "" && name == "":
		var t snapshotapi.Task
		t, err = task.read()
		at, name = t.Store, t.Path
	case place != "" && !task.given():
		at, err = parseStore(place)
	default:
		err = errors.New("give -store, and perhaps -path, or a task")
	}
	if err != nil {
		fmt.Fprintln(messages, err)
		return exitUsage
	}
	if err := show(context.Background(), at, name, out, o); err != nil {
		fmt.Fprintln(messages, err)
		return snapshotapi.ExitFailed
	}
	return 0
}

func show(ctx context.Context, at snapshotapi.Store, name string, out io.Writer, o snapshot.InspectOptions) error {
	bucket, err := store.Open(ctx, at)
	if err != nil {
		return err
	}
	defer bucket.Close()
	if name == "" {
		return list(ctx, bucket, out)
	}
	return snapshot.Inspect(ctx, bucket, name, out, o)
}

// list prints the paths of the snapshots that are whole.
func list(ctx context.Context, bucket *blob.Bucket, out io.Writer) error {
	objects := bucket.List(nil)
	for {
		object, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return store.Failure(err, "listing the snapshots")
		}
		if path.Base(object.Key) == manifest {
			fmt.Fprintln(out, path.Dir(object.Key))
		}
	}
}

// parseStore returns the store that a person named.
func parseStore(place string) (snapshotapi.Store, error) {
	if !strings.Contains(place, "://") {
		folder, err := filepath.Abs(place)
		if err == nil {
			_, err = os.Stat(folder) // Open would make it
		}
		return snapshotapi.Store{Folder: folder}, err
	}
	u, err := url.Parse(place)
	if err != nil {
		return snapshotapi.Store{}, fmt.Errorf("reading the store: %w", err)
	}
	if u.Scheme != "s3" || u.Host == "" {
		return snapshotapi.Store{}, fmt.Errorf("%s is neither a folder nor s3://BUCKET", place)
	}
	s := &snapshotapi.S3{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	parameters := map[string]*string{"endpoint": &s.Endpoint, "region": &s.Region, "ca": &s.CAFile}
	for name, values := range u.Query() {
		field, ok := parameters[name]
		if !ok || len(values) != 1 {
			return snapshotapi.Store{}, fmt.Errorf("%s: a store has at most one each of endpoint, region and ca, and no %s", place, name)
		}
		*field = values[0]
	}
	return snapshotapi.Store{S3: s}, nil
}
