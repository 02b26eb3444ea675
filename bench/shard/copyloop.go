package shard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	buffer = 256 << 10
	// window is the number of requested values that have not arrived.
	window = 4096
)

// CopyAll copies all items of each memcached to another one with pipelined requests and nothing else, as the baseline for the speed
// of snapshots, and returns their number. It lists the keys by metadump, requests all values over one connection without waiting,
// and adds each to the other server. It does not retry, store or limit anything.
func CopyAll(ctx context.Context, from, into []string) (int64, error) {
	var items atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for i := range from {
		group.Go(func() error {
			n, err := copyItems(ctx, from[i], into[i])
			items.Add(int64(n))
			return err
		})
	}
	err := group.Wait()
	return items.Load(), err
}

func copyItems(ctx context.Context, from, to string) (int, error) {
	keys, err := list(from)
	// memcached is busy with its own crawl after new items.
	for errors.Is(err, protocol.ErrBusy) && ctx.Err() == nil {
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
	group.Go(func() error { return requestAll(ctx, source, keys, ask) })
	group.Go(func() error { return passOn(source, target, keys, ask) })
	group.Go(func() error { return takeAnswers(target, len(keys)) })
	return len(keys), group.Wait()
}

func list(address string) ([][]byte, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, protocol.DumpRequest); err != nil {
		return nil, err
	}
	dump := protocol.NewDumpReader(bufio.NewReaderSize(conn, buffer))
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

// requestAll requests all values. Each number in requested allows 256 more.
func requestAll(ctx context.Context, conn net.Conn, keys [][]byte, requested chan<- int) error {
	var text []byte
	for from := 0; from < len(keys); from += 256 {
		text = text[:0]
		for _, key := range keys[from:min(from+256, len(keys))] {
			text, _ = protocol.AppendMetaGet(text, key, " v f t")
		}
		select {
		case requested <- from:
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, err := conn.Write(text); err != nil {
			return fmt.Errorf("requesting values: %w", err)
		}
	}
	return nil
}

func passOn(source, target net.Conn, keys [][]byte, requested <-chan int) error {
	r := bufio.NewReaderSize(source, buffer)
	w := bufio.NewWriterSize(target, buffer)
	var text []byte
	for i, key := range keys {
		if i%256 == 0 {
			<-requested
		}
		head, err := protocol.ReadHead(r)
		if err != nil {
			return fmt.Errorf("reading a value: %w", err)
		}
		if head.Code != protocol.MetaValue {
			return fmt.Errorf("got %s and not the value of %q", head.Code, key)
		}
		text, _ = protocol.AppendMetaSet(text[:0], key, head.Size, head.Flags, max(head.TTL, 0), true)
		if text, err = protocol.ReadValue(r, text, head.Size); err != nil {
			return fmt.Errorf("reading a value: %w", err)
		}
		text = append(text, "\r\n"...)
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("writing an item: %w", err)
		}
	}
	return w.Flush()
}

func takeAnswers(conn net.Conn, n int) error {
	r := bufio.NewReaderSize(conn, buffer)
	for range n {
		head, err := protocol.ReadHead(r)
		if err != nil {
			return fmt.Errorf("reading the answer to a store: %w", err)
		}
		if head.Code != protocol.MetaHit {
			return fmt.Errorf("%s to a store", head.Code)
		}
	}
	return nil
}
