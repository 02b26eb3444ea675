// Package copyloop copies all items of one memcached into another with nothing but
// pipelined requests: the measure for what snapshots may take longer.
//
// It lists the keys by metadump, asks for all values over one connection without
// waiting, and adds each to the other server as it arrives. It mends nothing, keeps
// nothing, and bounds nothing.
package copyloop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

const (
	buffer = 256 << 10
	// window is how many values may be asked for before one has come.
	window = 4096
)

// Copy copies all items and returns how many there were.
func Copy(ctx context.Context, from, to string) (int, error) {
	keys, err := list(from)
	// New items set off a crawl of memcached's own, which leaves no room for another.
	for errors.Is(err, memcache.ErrBusy) && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		keys, err = list(from)
	}
	if err != nil {
		return 0, fmt.Errorf("listing %s: %w", from, err)
	}
	source, err := net.Dial("tcp", from)
	if err != nil {
		return 0, err
	}
	defer source.Close()
	target, err := net.Dial("tcp", to)
	if err != nil {
		return 0, err
	}
	defer target.Close()

	group, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() {
		_ = source.SetDeadline(time.Unix(1, 0))
		_ = target.SetDeadline(time.Unix(1, 0))
	})
	defer stop()
	ask := make(chan int, window/256)
	group.Go(func() error { return askAll(ctx, source, keys, ask) })
	group.Go(func() error { return passOn(source, target, keys, ask) })
	group.Go(func() error { return takeAnswers(target, len(keys)) })
	return len(keys), group.Wait()
}

// list returns all keys of a server.
func list(address string) ([][]byte, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, memcache.DumpRequest); err != nil {
		return nil, err
	}
	dump := memcache.NewDumpReader(bufio.NewReaderSize(conn, buffer))
	var keys [][]byte
	var text []byte
	for {
		listed, err := dump.Next()
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, err
		}
		if cap(text)-len(text) < len(listed.Key) {
			text = make([]byte, 0, 1<<20)
		}
		from := len(text)
		text = append(text, listed.Key...)
		keys = append(keys, text[from:len(text):len(text)])
	}
}

// askAll requests all values; each number in asked allows 256 more.
func askAll(ctx context.Context, conn net.Conn, keys [][]byte, asked chan<- int) error {
	var text []byte
	for from := 0; from < len(keys); from += 256 {
		text = text[:0]
		for _, key := range keys[from:min(from+256, len(keys))] {
			text, _ = memcache.AppendMetaGet(text, key, " v f t")
		}
		select {
		case asked <- from:
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, err := conn.Write(text); err != nil {
			return fmt.Errorf("asking: %w", err)
		}
	}
	return nil
}

// passOn sends what arrives to the target.
func passOn(source, target net.Conn, keys [][]byte, asked <-chan int) error {
	r := bufio.NewReaderSize(source, buffer)
	w := bufio.NewWriterSize(target, buffer)
	var text []byte
	for i, key := range keys {
		if i%256 == 0 {
			<-asked
		}
		head, err := memcache.ReadHead(r)
		if err != nil {
			return fmt.Errorf("reading a value: %w", err)
		}
		if head.Code != memcache.MetaValue {
			return fmt.Errorf("%s instead of the value of %q", head.Code, key)
		}
		text, _ = memcache.AppendMetaSet(text[:0], key, head.Size, head.Flags, max(head.TTL, 0), true)
		if text, err = memcache.ReadValue(r, text, head.Size); err != nil {
			return fmt.Errorf("reading a value: %w", err)
		}
		text = append(text, "\r\n"...)
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("writing an item: %w", err)
		}
	}
	return w.Flush()
}

// takeAnswers reads the answers to the stores.
func takeAnswers(conn net.Conn, n int) error {
	r := bufio.NewReaderSize(conn, buffer)
	for range n {
		head, err := memcache.ReadHead(r)
		if err != nil {
			return fmt.Errorf("reading the answer to a store: %w", err)
		}
		if head.Code != memcache.MetaHit {
			return fmt.Errorf("%s to a store", head.Code)
		}
	}
	return nil
}
