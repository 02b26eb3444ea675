package items

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const fillTimeout = 10 * time.Minute

// Fill writes all items of a set with one address without waiting for answers, which takes seconds for a million.
func (s *Set) Fill() error {
	if len(s.addresses) != 1 {
		return fmt.Errorf("filling %d shards: use Write, as the client distributes the items", len(s.addresses))
	}
	var group errgroup.Group
	for worker := range workers {
		group.Go(func() error {
			if err := s.fill(worker); err != nil {
				return fmt.Errorf("filling %s: %w", s.addresses[0], err)
			}
			return nil
		})
	}
	return group.Wait()
}

// fill writes one worker's share.
func (s *Set) fill(worker int) error {
	conn, err := net.DialTimeout("tcp", s.addresses[0], timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(fillTimeout)); err != nil {
		return err
	}
	requests := bufio.NewWriterSize(conn, 1<<20)
	for i := worker; i < s.size; i += workers {
		key := s.key(i)
		value := s.value(key)
		if _, err := fmt.Fprintf(requests, "set %s 0 0 %d noreply\r\n%s\r\n", key, len(value), value); err != nil {
			return err
		}
	}
	// Despite noreply, memcached reports errors, before it answers the version.
	if _, err := requests.WriteString("version\r\n"); err != nil {
		return err
	}
	if err := requests.Flush(); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(answer, "VERSION ") {
		return fmt.Errorf("the answer is %q", answer)
	}
	return nil
}

// Flush removes all items of the shard at an address.
func Flush(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := protocol.At(address).Dial(ctx)
	if err == nil {
		err = errors.Join(conn.Command(ctx, "flush_all"), conn.Close())
	}
	if err != nil {
		return fmt.Errorf("flushing %s: %w", address, err)
	}
	return nil
}
