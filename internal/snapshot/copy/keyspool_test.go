package copy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestAgeGroups(t *testing.T) {
	for seconds, want := range map[int64]int{-5: 0, 0: 0, 59: 0, 60: 1, 119: 1, 120: 2, 239: 2, 240: 3, 3600: 6, 365 * 86400: 20, 1 << 40: 20} {
		if got := ageGroup(seconds); got != want {
			t.Errorf("%d s: %d, want %d", seconds, got, want)
		}
	}
}

// Keys of one age group keep their order, and no file is left.
func TestKeySpoolReturnsYoungestKeysFirst(t *testing.T) {
	dir := t.TempDir()
	s, err := newKeySpool(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Keys of an attempt that is restarted.
	if err := s.add([]byte("of a dump that failed"), 1, 0, 3); err != nil {
		t.Fatal(err)
	}
	if err := s.clear(); err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	for i := range n {
		if err := s.add(fmt.Appendf(nil, "key-%d\x00\n", i), int64(i), int64(3*i), i*7%ages); err != nil {
			t.Fatal(err)
		}
	}
	if s.keys != n {
		t.Errorf("%d keys, not %d", s.keys, n)
	}
	seen := 0
	last, lastAge := -1, -1
	for {
		key, size, expires, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		i := int(size)
		if want := fmt.Sprintf("key-%d\x00\n", i); string(key) != want {
			t.Fatalf("%q, want %q", key, want)
		}
		if expires != int64(3*i) {
			t.Fatalf("key %d expires at %d", i, expires)
		}
		age := i * 7 % ages
		if age < lastAge || age == lastAge && i < last {
			t.Fatalf("key %d of age %d comes after key %d of age %d", i, age, last, lastAge)
		}
		last, lastAge = i, age
		seen++
	}
	if seen != n {
		t.Errorf("%d of %d keys were returned", seen, n)
	}
	if err := s.remove(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestKeySpoolsShareTheirSpace(t *testing.T) {
	space := &spoolSpace{limit: 1 << 20}
	first, err := newKeySpool(t.TempDir(), space)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newKeySpool(t.TempDir(), space)
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, 200)
	for range 5000 { // about 1 MB
		if err := first.add(key, 1, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	for err = nil; err == nil; {
		err = second.add(key, 1, 0, 0)
	}
	if f := wire.AsFailure(err); f == nil || f.Reason != wire.ReasonSpoolFull || !f.Final || second.keys > 300 {
		t.Errorf("after %d keys: %v", second.keys, err)
	}
	if err := first.remove(); err != nil {
		t.Fatal(err)
	}
	if err := second.add(key, 1, 0, 0); err != nil {
		t.Errorf("after the other one was removed: %v", err)
	}
	if err := second.remove(); err != nil || space.used.Load() != 0 {
		t.Errorf("%d bytes are still used, %v", space.used.Load(), err)
	}
}

// What a tenant's image calls memcached may list keys forever.
func TestDumpOfFarMoreKeysThanItemsIsStopped(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					switch {
					case lines.Text() == "stats":
						_, err = io.WriteString(c, "STAT curr_items 3\r\nSTAT uptime 2\r\nSTAT time 62\r\nEND\r\n")
					default:
						keys := strings.Repeat("key=k exp=-1 la=1795000000 cas=1 fetch=no cls=1 size=50\n", 1000)
						for err == nil {
							_, err = io.WriteString(c, keys)
						}
					}
				}
			}()
		}
	}()
	_, err = Save(t.Context(), memblob.OpenBucket(nil), wire.Task{ID: "1", Path: "s", Servers: []string{listener.Addr().String()}},
		Options{SpoolDir: t.TempDir(), Progress: &Progress{}, Log: slog.New(slog.DiscardHandler)})
	if f := wire.AsFailure(err); f == nil || f.Reason != wire.ReasonSpoolFull || !f.Final {
		t.Fatal(err)
	}
	if text := err.Error(); !strings.Contains(text, "more than 1000006 keys") {
		t.Error(text)
	}
}
