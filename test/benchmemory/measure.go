package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// filled is what a full shard contains and uses, in bytes.
type filled struct {
	memory resource.Quantity
	value  int
	// plain and items are the numbers of items without and with this operator.
	plain, items int64
	// file is the memory volume, peak the container's highest memory, plainPeak that of the plain memcached.
	file, peak, plainPeak, limit int64
}

func (f filled) share() float64 { return float64(f.items) / float64(f.plain) }

func (f filled) String() string {
	return fmt.Sprintf("%s, values of %d bytes: %d items, plain %d (%s); volume %s, peak %s of %s, plain %s", f.memory.String(), f.value, f.items, f.plain,
		report.Percent(f.share(), 1), report.Mebibytes(f.file), report.Mebibytes(f.peak), report.Mebibytes(f.limit), report.Mebibytes(f.plainPeak))
}

// specOf returns a spec with the API's defaults.
func specOf(memory resource.Quantity, connections int32) *v1alpha1.MemcachedSpec {
	itemSize := resource.MustParse("1Mi")
	return &v1alpha1.MemcachedSpec{Memory: &memory, MaxConnections: &connections, Threads: new(int32(4)), MaxItemSize: &itemSize}
}

func (b *bench) measureItems(ctx context.Context, memory resource.Quantity, value int) (f filled, err error) {
	spec := specOf(memory, 1024)
	limit := resources.MemoryLimit(spec)
	f = filled{memory: memory, value: value, limit: limit.Value()}
	plain, err := b.startPlain(ctx, spec)
	if err != nil {
		return f, err
	}
	f.plain, err = plain.fill(ctx, memory.Value(), value)
	f.plainPeak, err = and(err)(plain.peak())
	if err := errors.Join(err, plain.stop()); err != nil {
		return f, err
	}
	shard, err := b.startShard(ctx, spec)
	if err != nil {
		return f, err
	}
	f.items, err = shard.fill(ctx, memory.Value(), value)
	f.peak, err = and(err)(shard.peak())
	f.file, err = and(err)(shard.fileSize())
	return f, errors.Join(err, shard.stop())
}

// and returns a value with its error and a former one.
func and(former error) func(int64, error) (int64, error) {
	return func(value int64, err error) (int64, error) { return value, errors.Join(former, err) }
}

// connected is the memory of a connection in bytes.
type connected struct {
	state string
	// memory is without the buffers of the socket.
	memory, buffers float64
}

const (
	// largeItem is read unread times by each of stalled clients, which don't read the answers.
	largeItem = 100_000
	unread    = 10
	stalled   = 100
)

func (b *bench) measureConnections(ctx context.Context) (all []connected, err error) {
	s, err := b.startShard(ctx, specOf(resource.MustParse("64Mi"), int32(b.options.connections+256))) //nolint:gosec // a few thousand
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	before, buffersBefore, err := s.usage()
	if err != nil {
		return nil, err
	}
	add := func(state string, connections int) error {
		time.Sleep(2 * time.Second) // until memcached has read everything
		memory, buffers, err := s.usage()
		n := float64(connections)
		all = append(all, connected{state, float64(memory-before) / n, float64(buffers-buffersBefore) / n})
		return err
	}
	var clients []net.Conn
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	for range b.options.connections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	if err := add("idle, without a request", len(clients)); err != nil {
		return nil, err
	}
	answer := make([]byte, 256)
	for range 10 {
		for _, c := range clients {
			if _, err := fmt.Fprintf(c, "set key 0 0 500\r\n%0500d\r\n", 0); err != nil {
				return nil, err
			}
			if _, err := c.Read(answer); err != nil {
				return nil, err
			}
		}
	}
	if err := add("idle, after ten requests of 500 bytes", len(clients)); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(clients[0], "set large 0 0 %d\r\n%0*d\r\n", largeItem, largeItem, 0); err != nil {
		return nil, err
	}
	if _, err := clients[0].Read(answer); err != nil {
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
	return all, add(fmt.Sprintf("additionally, while the client doesn't read %d answers of %d kB", unread, largeItem/1000), len(few))
}
