package process

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/memcacheclient"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func TestProtocolWithEachVersion(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := pods.StartRaw(t, version, pods.SharedDir(t), "-I", "2m", "-t", "2", "-C")
			ctx := t.Context()
			conn, err := protocol.At(r.Address()).Dial(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			client, err := memcacheclient.Dial(ctx, r.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()

			if got, err := conn.Version(ctx); err != nil || got != version {
				t.Errorf("version %q, %v", got, err)
			}
			settings, err := settingsOf(r)
			if want := (protocol.Settings{ItemSizeMax: 2 << 20, Evictions: true}); err != nil || settings != want {
				t.Errorf("settings %+v, %v", settings, err)
			}
			if item, err := client.Get(ctx, "nothing", ""); err != nil || item != nil {
				t.Errorf("a miss returned %+v, %v", item, err)
			}
			big := []byte(strings.Repeat("big\r\nEND\r\n", 150_000))
			if err := client.Set(ctx, "big", big, 42, 0); err != nil {
				t.Error(err)
			}
			if item, err := client.Get(ctx, "big", ""); err != nil || item == nil || item.Flags != 42 || string(item.Value) != string(big) || item.TTL != -1 {
				t.Errorf("1.5 MB came back different: %v", err)
			}
			if err := client.Set(ctx, "m", []byte("x"), 7, 100_000); err != nil {
				t.Error(err)
			}
			if item, err := client.Get(ctx, "m", ""); err != nil || item == nil || item.Flags != 7 || string(item.Value) != "x" || item.TTL < 90_000 || item.TTL > 100_000 {
				t.Errorf("%+v, %v", item, err)
			}
			if answer := pods.Talk(t, r.Address(), "ms m 1 ME\r\ny\r\n"); answer != "NS\r\n" {
				t.Errorf("the answer to an add is %q", answer)
			}
			if general, err := conn.General(ctx); err != nil || general.Items != 2 || general.PID != r.Command.Process.Pid {
				t.Errorf("general %+v, %v", general, err)
			}
			var refused *protocol.ServerError
			if err := client.Set(ctx, "huge", make([]byte, 3<<20), 0, 0); !errors.As(err, &refused) {
				t.Errorf("3 MB into 2 MiB: %v", err)
			}
			canceled, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := conn.Version(canceled); !errors.Is(err, context.Canceled) {
				t.Errorf("after it was canceled: %v", err)
			}
			if _, err := conn.Version(ctx); !errors.Is(err, net.ErrClosed) {
				t.Errorf("after an error: %v", err)
			}
		})
	}
}

// settingsOf reads the settings of a server.
func settingsOf(r *pods.Raw) (protocol.Settings, error) {
	conn, err := net.Dial("tcp", r.Address())
	if err != nil {
		return protocol.Settings{}, err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("stats settings\r\n")); err != nil {
		return protocol.Settings{}, err
	}
	stats, err := protocol.ReadStats(bufio.NewReader(conn))
	if err != nil {
		return protocol.Settings{}, err
	}
	return protocol.ParseSettings(stats)
}
