package facts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// dump requests a dump, reads its first line, and then no more, until the returned function ends the connection.
func dump(t *testing.T, address string) (end func(), err error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	pods.Must(t, err)
	end = func() { _ = conn.Close() }
	t.Cleanup(end)
	_, err = io.WriteString(conn, protocol.DumpRequest)
	pods.Must(t, err)
	pods.Must(t, conn.SetReadDeadline(time.Now().Add(pods.Patience/10)))
	if _, err = protocol.NewDumpReader(bufio.NewReader(conn)).Next(); err != nil {
		end() // memcached serves no other dump while it can't write a first one
	}
	return end, err
}

// dumped starts a memcached with so many items, and a dump of them that is not read.
func dumped(t *testing.T, version string, items int, arguments ...string) (server *pods.Cache, end func()) {
	t.Helper()
	// With a hash table that needn't grow: before 1.6.28 a dump that begins just then never ends (see protocol.ReadDump).
	server = pods.StartCache(t, version, append([]string{"-m", "256", "-o", "hashpower=18"}, arguments...)...)
	var text strings.Builder
	for i := range items {
		fmt.Fprintf(&text, "ms a-key-of-some-length-%0100d 1 q\r\nv\r\n", i)
	}
	server.Talk(text.String())
	// memcached's own crawl, which new items set off, may be before the first one.
	if !pods.Eventually(func() bool {
		var err error
		end, err = dump(t, server.Address())
		return err == nil
	}) {
		t.Fatal("there is no dump")
	}
	return server, end
}

// A crawler that sleeps doesn't hold the lock that the next request needs.
func TestMemcachedIsBusyWithAnotherKeyDump(t *testing.T) {
	t.Parallel()
	for _, version := range []string{pods.Middle, pods.Newest} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server, _ := dumped(t, version, 10_000, "-o", "lru_crawler_sleep=1000000")
			var err error
			if !pods.Eventually(func() bool { // another dump starts if the one before has finished
				_, err = dump(t, server.Address())
				return errors.Is(err, protocol.ErrBusy)
			}) {
				t.Errorf("a dump beside another one: %v", err)
			}
		})
	}
}

// While a dump isn't read, memcached says that its crawler runs, and the thread that gets another request for one stands
// still. So protocol.ReadDump asks first.
func TestMemcachedShowsThatADumpIsNotRead(t *testing.T) {
	pods.WithEach(t, pods.Versions, func(t *testing.T, version string) {
		// More lines than the buffers between two programs hold.
		server, end := dumped(t, version, 200_000, "-t", "1")
		for _, running := range []bool{true, false} {
			if !running {
				end()
			}
			if !pods.Eventually(func() bool { return (server.Stats("stats")["lru_crawler_running"] == "1") == running }) {
				t.Errorf("lru_crawler_running is not %t", running)
			}
		}
	})
}
