// Benchmemory measures how many items a shard stores and how much memory its container uses: memcached under the agent with
// the arguments that the operator gives it, in comparison with a plain memcached with the same memory for items. It needs
// root and no cluster, prints tables and writes them to docs/.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

type options struct {
	version  string
	memories []resource.Quantity
	values   []int
	// connections is how many clients connect at once; 0 omits that part.
	connections int
	out         string
}

type bench struct {
	options
	// dir has the agent's program and the shard's volumes.
	dir string
}

func main() { report.Main(run) }

func run(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	// In memory, as a pod's volume is.
	dir, err := os.MkdirTemp("/dev/shm", "bench-memory-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{options: o, dir: dir}
	if err := b.buildAgent(ctx); err != nil {
		return err
	}
	d := document{options: o, args: args, date: time.Now()}
	if d.machine, err = describe(); err != nil {
		return err
	}
	fmt.Println(d.machine)
	for _, memory := range o.memories {
		for _, value := range o.values {
			f, err := b.measureItems(ctx, memory, value)
			if err != nil {
				return fmt.Errorf("%s with values of %d bytes: %w", memory.String(), value, err)
			}
			fmt.Println(f)
			d.filled = append(d.filled, f)
		}
	}
	if o.connections > 0 {
		if d.connected, err = b.measureConnections(ctx); err != nil {
			return fmt.Errorf("%d connections: %w", o.connections, err)
		}
	}
	fmt.Printf("\n%s\n%s\nThe benchmark took %s.\n", d.items().Terminal(), d.connections().Terminal(), time.Since(d.date).Round(time.Second))
	if o.out != "" {
		if err := d.write(o.out); err != nil {
			return err
		}
	}
	return d.check()
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench-memory", flag.ExitOnError)
	flags.StringVar(&o.version, "version", os.Getenv("MEMCACHED_NEWEST"), "`version` of memcached in $MEMCACHED_DIR")
	memories := flags.String("memory", "64Mi,512Mi,4Gi", "`amounts` of spec.memory, separated by commas")
	values := flags.String("values", "100,500,4096", "`bytes` of the values, separated by commas")
	flags.IntVar(&o.connections, "connections", 5000, "clients that connect at once; 0 measures no connections")
	flags.StringVar(&o.out, "out", "docs", "`folder` for the document, relative to the project's; empty writes none")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if os.Getenv("MEMCACHED_DIR") == "" || os.Geteuid() != 0 {
		return o, errors.New(`this needs root and MEMCACHED_DIR: run make bench-memory`)
	}
	for text := range strings.SplitSeq(*memories, ",") {
		memory, err := resource.ParseQuantity(text)
		if err != nil {
			return o, fmt.Errorf("-memory: %w", err)
		}
		o.memories = append(o.memories, memory)
	}
	for text := range strings.SplitSeq(*values, ",") {
		value, err := strconv.Atoi(text)
		if err != nil || value < 1 {
			return o, fmt.Errorf("-values: %q is not a number of bytes", text)
		}
		o.values = append(o.values, value)
	}
	var err error
	o.out, err = report.Folder(o.out)
	return o, err
}

func (b *bench) memcached() string {
	return filepath.Join(os.Getenv("MEMCACHED_DIR"), b.version, "memcached")
}

func (b *bench) agent() string { return filepath.Join(b.dir, "agent") }

// buildAgent builds the agent with the flags of its image.
func (b *bench) buildAgent(ctx context.Context) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w", "-o", b.agent(), "./cmd/agent")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the agent: %w: %s", err, out)
	}
	return nil
}
