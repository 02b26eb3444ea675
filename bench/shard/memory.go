package shard

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// minimalShare is the share of a plain memcached's items that a shard must store.
const minimalShare = 0.99

//go:embed memory.md
var memoryTemplate string

// Memory measures how many items a shard stores and how much memory its container uses: memcached under the agent with the
// arguments that the operator gives it, in comparison with a plain memcached with the same memory for items.
var Memory = report.Benchmark{Name: "memory", Summary: "how many items fit into a shard, and what its memory is used for", Template: memoryTemplate,
	Flags: func(flags *flag.FlagSet) report.Measure {
		o := &memoryOptions{}
		version(flags, &o.version)
		flags.StringVar(&o.memories, "memory", "64Mi,512Mi,4Gi", "`amounts` of spec.memory, separated by commas")
		flags.StringVar(&o.values, "values", "100,500,4096", "`bytes` of the values, separated by commas")
		flags.IntVar(&o.connections, "connections", 5000, "clients that connect at once; 0 measures no connections")
		return o.run
	}}

func version(flags *flag.FlagSet, into *string) {
	flags.StringVar(into, "version", os.Getenv("MEMCACHED_NEWEST"), "`version` of memcached in $MEMCACHED_DIR")
}

func resource(bytes int64) apiresource.Quantity {
	return *apiresource.NewQuantity(bytes, apiresource.BinarySI)
}

type memoryOptions struct {
	version, memories, values string
	// connections is how many clients connect at once; 0 omits that part.
	connections int
}

func (o *memoryOptions) run(ctx context.Context, r *report.Run) (result report.Result, err error) {
	machine, err := report.Machine()
	if err != nil {
		return result, err
	}
	groups := 2
	if !groupsV2() {
		groups = 1
	}
	result = report.Result{Machine: fmt.Sprintf("A %s, control groups version %d.", machine, groups), Values: map[string]any{
		"Version": o.version, "Clients": report.Number(o.connections), "Stalled": stalled, "Share": report.Percent(minimalShare, 0),
	}}
	err = onHost(ctx, o.version, func(h *host) error {
		var all []filled
		for text := range strings.SplitSeq(o.memories, ",") {
			memory, err := apiresource.ParseQuantity(text)
			if err != nil {
				return fmt.Errorf("-memory: %w", err)
			}
			for text := range strings.SplitSeq(o.values, ",") {
				value, err := strconv.Atoi(text)
				if err != nil || value < 1 {
					return fmt.Errorf("-values: %q is not a number of bytes", text)
				}
				f, err := h.measureItems(ctx, memory.Value(), value)
				if err != nil {
					return fmt.Errorf("%s with values of %d bytes: %w", memory.String(), value, err)
				}
				all, result.Missed = append(all, f), errors.Join(result.Missed, f.check())
				r.Say("%s", strings.Join(f.row(), ", "))
			}
		}
		result.Tables = []report.Table{items(all)}
		if o.connections == 0 {
			return nil
		}
		connections, err := h.measureConnections(ctx, o.connections)
		result.Tables = append(result.Tables, connections)
		return err
	})
	return result, err
}

// filled is what a full shard contains and uses, in bytes.
type filled struct {
	memory int64
	value  int
	// plain and items are the numbers of items without and with this operator.
	plain, items int64
	// file is the memory volume, peak the container's highest memory, plainPeak that of the plain memcached.
	file, peak, plainPeak, limit int64
}

func (f filled) share() float64 { return float64(f.items) / float64(f.plain) }

func items(all []filled) report.Table {
	table := report.Table{{"`memory` and value", "items, plain", "items, this operator", "", "memory volume", "peak of the container", "limit", "peak, plain"}}
	for _, f := range all {
		table = append(table, f.row())
	}
	return table
}

func (f filled) row() []string {
	memory := resource(f.memory)
	return []string{
		fmt.Sprintf("%s, %s B", memory.String(), report.Number(f.value)), report.Number(f.plain), report.Number(f.items), report.Percent(f.share(), 1),
		report.Mebibytes(f.file), fmt.Sprintf("%s (%s)", report.Mebibytes(f.peak), report.Percent(float64(f.peak)/float64(f.limit), 0)), report.Mebibytes(f.limit), report.Mebibytes(f.plainPeak),
	}
}

// check returns an error if the shard stores too few items or used all of its memory.
func (f filled) check() error {
	if f.share() < minimalShare || f.peak > f.limit {
		return fmt.Errorf("a shard stores less than %s of a plain memcached's items, or needs more than its limit: %s", report.Percent(minimalShare, 0), strings.Join(f.row(), ", "))
	}
	return nil
}

func (h *host) measureItems(ctx context.Context, memory int64, value int) (filled, error) {
	spec := specOf(memory, 1024)
	limit := resources.MemoryLimit(spec)
	f := filled{memory: memory, value: value, limit: limit.Value()}
	plain, err := h.plain(ctx, memory, 1024, 4)
	if err != nil {
		return f, err
	}
	if f.plain, err = plain.fill(ctx, memory, value); err != nil {
		return f, err
	}
	if f.plainPeak, err = plain.peak(); err != nil {
		return f, err
	}
	if err := plain.stop(); err != nil {
		return f, err
	}
	shard, err := h.shard(ctx, spec, nil)
	if err != nil {
		return f, err
	}
	if f.items, err = shard.fill(ctx, memory, value); err != nil {
		return f, err
	}
	if f.peak, err = shard.peak(); err != nil {
		return f, err
	}
	if f.file, err = shard.fileSize(); err != nil {
		return f, err
	}
	return f, shard.stop()
}

// fileSize returns how much memory the files of the shard's volume use.
func (s *server) fileSize() (int64, error) {
	var sum int64
	data := filepath.Join(s.dir, "data")
	files, err := os.ReadDir(data)
	for _, file := range files {
		var stat syscall.Stat_t
		err = errors.Join(err, syscall.Stat(filepath.Join(data, file.Name()), &stat))
		sum += stat.Blocks * 512
	}
	return sum, err
}

// fill stores new items until memcached evicts some, and more of them then, so that all that can grow has grown. It returns
// how many items memcached keeps.
func (s *server) fill(ctx context.Context, memory int64, value int) (int64, error) {
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	requests, answers := bufio.NewWriterSize(conn, 1<<20), bufio.NewReader(conn)
	body := strings.Repeat("x", value)
	batch := int(memory / int64(value+100) / 20)
	for n, more := 0, 2; ; {
		for range batch {
			n++
			if _, err := fmt.Fprintf(requests, "set key:%010d 0 0 %d noreply\r\n%s\r\n", n, value, body); err != nil {
				return 0, err
			}
		}
		// memcached answers in order, so it has stored all then. It reports errors despite noreply.
		if _, err := requests.WriteString("version\r\n"); err != nil {
			return 0, err
		}
		if err := requests.Flush(); err != nil {
			return 0, err
		}
		for line := ""; !strings.HasPrefix(line, "VERSION "); {
			if line, err = answers.ReadString('\n'); err != nil {
				return 0, err
			}
		}
		stats, err := s.stats(ctx)
		if err != nil {
			return 0, err
		}
		if stats["evictions"] != "0" {
			if more--; more < 0 {
				return protocol.ParseGeneral(stats).Items, nil
			}
		}
	}
}

const (
	// largeItem is read unread times by each of stalled clients, which don't read the answers.
	largeItem = 100_000
	unread    = 10
	stalled   = 100
)

// measureConnections returns the memory of a connection without the buffers of its socket, and these, in several states.
func (h *host) measureConnections(ctx context.Context, connections int) (report.Table, error) {
	table := report.Table{{"a connection", "memory", "and buffers of its socket"}}
	s, err := h.shard(ctx, specOf(64<<20, int32(connections+256)), nil) //nolint:gosec // a few thousand
	if err != nil {
		return nil, err
	}
	var before, buffersBefore int64
	add := func(state string, connections int) error {
		if err := cluster.Sleep(ctx, 2*time.Second); err != nil { // until memcached has read everything
			return err
		}
		memory, buffers, err := s.usage()
		kibibytes := func(bytes int64) string { return fmt.Sprintf("%.1f KiB", float64(bytes)/float64(connections)/1024) }
		table = append(table, []string{state, kibibytes(memory - before), kibibytes(buffers - buffersBefore)})
		return err
	}
	if before, buffersBefore, err = s.usage(); err != nil {
		return nil, err
	}
	var clients []net.Conn
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	for range connections {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	if err := add("idle, without a request", len(clients)); err != nil {
		return nil, err
	}
	answer := make([]byte, 256)
	set := func(c net.Conn, key string, size int) error {
		if _, err := fmt.Fprintf(c, "set %s 0 0 %d\r\n%0*d\r\n", key, size, size, 0); err != nil {
			return err
		}
		_, err := c.Read(answer)
		return err
	}
	for range 10 {
		for _, c := range clients {
			if err := set(c, "key", 500); err != nil {
				return nil, err
			}
		}
	}
	if err := add("idle, after ten requests of 500 bytes", len(clients)); err != nil {
		return nil, err
	}
	if err := set(clients[0], "large", largeItem); err != nil {
		return nil, err
	}
	if before, buffersBefore, err = s.usage(); err != nil {
		return nil, err
	}
	few := clients[:min(stalled, len(clients))]
	for _, c := range few {
		if _, err := io.WriteString(c, strings.Repeat("get large\r\n", unread)); err != nil {
			return nil, err
		}
	}
	return table, add(fmt.Sprintf("additionally, while the client doesn't read %d answers of %d kB", unread, largeItem/1000), len(few))
}
