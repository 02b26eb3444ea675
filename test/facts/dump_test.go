package facts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// A dump that is not read holds memcached's crawler, and the next one is answered with BUSY.
func TestMemcachedIsBusyWithAnotherKeyDump(t *testing.T) {
	t.Parallel()
	for _, version := range []string{pods.Middle, pods.Newest} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := pods.StartRaw(t, version, pods.SharedDir(t), "-m", "256")
			var text strings.Builder
			for i := range 200_000 { // more lines than the buffers between two programs hold
				fmt.Fprintf(&text, "ms a-key-of-some-length-%0100d 1 q\r\nv\r\n", i)
			}
			server.Ask(text.String()+"mn\r\n", "MN\r\n")
			dump := func() error {
				conn, err := net.Dial("tcp", server.Address())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				if _, err := io.WriteString(conn, protocol.DumpRequest); err != nil {
					t.Fatal(err)
				}
				_, err = protocol.NewDumpReader(bufio.NewReader(conn)).Next()
				return err
			}
			// memcached's own crawl, which new items set off, may be before the first one.
			if !pods.Eventually(func() bool { return dump() == nil }) {
				t.Fatal("there is no dump")
			}
			if err := dump(); !errors.Is(err, protocol.ErrBusy) {
				t.Errorf("the second dump: %v", err)
			}
		})
	}
}
