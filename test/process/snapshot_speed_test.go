package process

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"
)

// fillCaches writes so many items of 500 bytes with keys and half random values.
func fillCaches(t testing.TB, size, valueBytes int, caches ...*cache) {
	t.Helper()
	var group errgroup.Group
	for i, c := range caches {
		group.Go(func() error {
			conn, err := net.Dial("tcp", c.address())
			if err != nil {
				return err
			}
			defer conn.Close()
			value := make([]byte, valueBytes)
			seed := uint64(i + 1)
			var text []byte
			for n := range size {
				// Half of it hard to compress, as values often are.
				for at := 0; at < valueBytes; at++ {
					if at%2 == 0 {
						seed = seed*6364136223846793005 + 1442695040888963407
						value[at] = byte(seed >> 56)
					} else {
						value[at] = 'a' + byte(at%16)
					}
				}
				text = append(text, "set key:"...)
				text = strconv.AppendInt(text, int64(i), 10)
				text = append(text, ':')
				text = strconv.AppendInt(text, int64(n), 10)
				text = append(text, " 0 0 "...)
				text = strconv.AppendInt(text, int64(valueBytes), 10)
				text = append(text, " noreply\r\n"...)
				text = append(text, value...)
				text = append(text, "\r\n"...)
				if len(text) > 1<<20 || n == size-1 {
					if n == size-1 {
						text = append(text, "mn\r\n"...)
					}
					if _, err := conn.Write(text); err != nil {
						return err
					}
					text = text[:0]
				}
			}
			answer := make([]byte, 4)
			if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "MN\r\n" {
				return fmt.Errorf("answer %q: %w", answer, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
