package protocol

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
)

// pipe returns a connection to a server that answers once, with the time of the test.
func pipe(t *testing.T, answer string) *Conn {
	t.Helper()
	client, server := fake.Pipe()
	go func() {
		_, _ = bufio.NewReader(server).ReadString('\n')
		_, _ = io.WriteString(server, answer)
	}()
	at := Server{DialContext: func(context.Context, string, string) (net.Conn, error) { return client, nil }}
	conn, err := at.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestWatchFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const entries = "OK\r\n" +
			"ts=1.2 gid=1 type=item_get key=a%20b status=found clsid=1 cfd=30 size=1\n" +
			"skipped=7\n" +
			"ts=1.2 gid=2 type=conn_new rip=127.0.0.1 rport=1 transport=tcp cfd=3\n" +
			"ts=1.2 gid=3 type=item_get key=b status=not_found clsid=255 cfd=30 size=0\n" +
			"ts=1.2 gid=3 type=item_get key=c status=expired clsid=255 cfd=30 size=0\n" +
			"skipped=2\n"
		type fetch struct {
			Key string
			Hit bool
		}
		var got []fetch
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		skipped, err := pipe(t, entries).WatchFetches(ctx, func(f Fetch) bool {
			got = append(got, fetch{string(f.Key), f.Hit})
			return true
		})
		if diff := cmp.Diff([]fetch{{"a b", true}, {"b", false}, {"c", false}}, got); diff != "" || skipped != 9 || err != nil {
			t.Errorf("skipped %d, %v: %s", skipped, err, diff)
		}

		n := 0
		if _, err := pipe(t, entries).WatchFetches(t.Context(), func(Fetch) bool { n++; return false }); n != 1 || err != nil {
			t.Errorf("%d reads after visit has returned false, %v", n, err)
		}

		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := pipe(t, "").WatchFetches(ctx, func(Fetch) bool { return true }); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("without an answer: %v", err)
		}
		_, err = pipe(t, "CLIENT_ERROR watch commands not allowed\r\n").WatchFetches(t.Context(), func(Fetch) bool { return true })
		if client := (*ClientError)(nil); !errors.As(err, &client) {
			t.Errorf("with -W: %v", err)
		}
	})
}

func TestConns(t *testing.T) {
	const conns = "STAT 22:addr tcp:0.0.0.0:11211\r\nSTAT 22:state conn_listening\r\nSTAT 22:secs_since_last_cmd 99\r\n" +
		"STAT 25:addr tcp:10.0.0.7:40000\r\nSTAT 25:listen_addr tcp:10.0.0.1:11211\r\nSTAT 25:state conn_read\r\nSTAT 25:secs_since_last_cmd 7\r\n" +
		"STAT 26:addr tcp6:[fd00::1]:40000\r\nSTAT 26:state conn_new_cmd\r\nSTAT 26:resps_waiting 1\r\nSTAT 26:secs_since_last_cmd 0\r\n" +
		"STAT 27:addr unix:/tmp/x\r\nSTAT 27:state conn_read\r\nSTAT 27:secs_since_last_cmd 1\r\nEND\r\n"
	general := func(connections string) string { return "STAT curr_connections " + connections + "\r\nEND\r\n" }
	var got []ClientConn
	err := dial(t, serve(t, general("3"), conns)).Conns(t.Context(), 10, func(c ClientConn) { got = append(got, c) })
	if diff := cmp.Diff([]ClientConn{{"10.0.0.7", 7}, {"fd00::1", 0}, {"unix", 1}}, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	conn := dial(t, serve(t, general("11"), conns))
	if err := conn.Conns(t.Context(), 10, func(ClientConn) { t.Error("listed") }); !errors.Is(err, ErrTooLong) {
		t.Errorf("with more connections than the limit: %v", err)
	}
	if _, err := conn.Version(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is not closed: %v", err)
	}
}
