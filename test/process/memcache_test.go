package process

import (
	"errors"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

// internal/memcache against real servers: one conversation with each version.
func TestProtocol(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := startRaw(t, version, sharedDir(t), "-I", "2m", "-t", "2", "-C")
			ctx := t.Context()
			conn, err := memcache.Dial(ctx, "tcp", r.address())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()

			if got, err := conn.Version(ctx); err != nil || got != version {
				t.Errorf("version %q, %v", got, err)
			}
			settings, err := conn.Settings(ctx)
			if err != nil || settings.ItemSizeMax != 2<<20 || settings.Threads != 2 || settings.CAS || settings.MemoryFile != r.dir+"/memory" {
				t.Errorf("settings %+v, %v", settings, err)
			}
			if item, err := conn.Get(ctx, "nothing"); err != nil || item != nil {
				t.Errorf("a miss gave %+v, %v", item, err)
			}
			big := []byte(strings.Repeat("big\r\nEND\r\n", 150_000))
			if err := conn.Set(ctx, "big", big, 42, 0); err != nil {
				t.Error(err)
			}
			if item, err := conn.Get(ctx, "big"); err != nil || item.Flags != 42 || string(item.Value) != string(big) {
				t.Errorf("1.5 MB came back otherwise: %v", err)
			}
			if meta, err := conn.MetaSet(ctx, "m", []byte("x"), "T60", "F7"); err != nil || meta.Code != memcache.MetaHit {
				t.Errorf("ms: %+v, %v", meta, err)
			}
			if meta, err := conn.MetaSet(ctx, "m", []byte("y"), "ME"); err != nil || meta.Code != memcache.MetaNotStored {
				t.Errorf("ms with add: %+v, %v", meta, err)
			}
			meta, err := conn.MetaGet(ctx, "m", "v", "f", "t")
			flags, _ := meta.Flag('f')
			if err != nil || string(meta.Value) != "x" || flags != "7" {
				t.Errorf("mg: %+v, %v", meta, err)
			}
			if general, err := conn.General(ctx); err != nil || general.Items != 2 || general.PID != r.command.Process.Pid {
				t.Errorf("general %+v, %v", general, err)
			}
			var refused *memcache.ServerError
			err = conn.Set(ctx, "huge", make([]byte, 3<<20), 0, 0)
			if !errors.As(err, &refused) {
				t.Errorf("3 MB into 2 MiB: %v", err)
			}
			if _, err := conn.Version(ctx); !errors.Is(err, memcache.ErrClosed) {
				t.Errorf("after an error: %v", err)
			}
		})
	}
}
