package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

func TestAges(t *testing.T) {
	for seconds, want := range map[int64]int{-5: 0, 0: 0, 59: 0, 60: 1, 119: 1, 120: 2, 239: 2, 240: 3, 3600: 6, 365 * 86400: 20, 1 << 40: 20} {
		if got := ageOf(seconds); got != want {
			t.Errorf("%d s: %d, want %d", seconds, got, want)
		}
	}
}

// Keys come out by age, those of one age as they came in, and leave nothing behind.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	s, err := newSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	// What an attempt left that is begun anew.
	if err := s.add([]byte("of a dump that broke off"), 1, 0, 3); err != nil {
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
		t.Errorf("%d keys came out of %d", seen, n)
	}
	if err := s.remove(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

func TestAnItemExpiresWhenItWouldHaveOrAtTheBound(t *testing.T) {
	const now = 1_795_000_000
	for name, c := range map[string]struct {
		expires, maxTTL int64
		want            int64
		lives           bool
	}{
		"never":                    {0, 0, 0, true},
		"never, bounded":           {0, 60, now + 60, true},
		"before the bound":         {now + 30, 60, now + 30, true},
		"after the bound":          {now + 90, 60, now + 60, true},
		"later, unbounded":         {now + 90, 0, now + 90, true},
		"in more than 30 days":     {now + 9_000_000, 0, now + 9_000_000, true},
		"just now":                 {now, 0, 0, false},
		"long ago, although bound": {now - 90, 60, 0, false},
	} {
		target := &target{maxTTL: c.maxTTL, env: Env{Now: func() time.Time { return time.Unix(now, 0) }}}
		got, lives := target.expiry(record{expires: c.expires})
		if lives != c.lives || lives && got != c.want {
			t.Errorf("%s: %d, %t", name, got, lives)
		}
	}
}

func TestBatchesAreSmallWhereTheLimitIs(t *testing.T) {
	for _, c := range []struct {
		items      int
		bytes      int64
		batchItems int
		batchBytes int64
	}{
		{0, 0, 256, 256 << 10}, {20_000, 32 << 20, 100, 32 << 20 / 200}, {1, 1, 1, 1}, {1 << 30, 1 << 40, 256, 256 << 10},
	} {
		l := newLimit(snapshotapi.Task{ItemsPerSecond: c.items, BytesPerSecond: c.bytes})
		if l.batchItems != c.batchItems || l.batchBytes != c.batchBytes {
			t.Errorf("%d items and %d bytes a second: batches of %d and %d, want %d and %d", c.items, c.bytes, l.batchItems, l.batchBytes, c.batchItems, c.batchBytes)
		}
	}
}

func TestMeter(t *testing.T) {
	m := &Meter{}
	m.expect(10)
	began := time.Now()
	m.add(4, 100)
	m.add(2, 50)
	p := m.Progress("7")
	if p.TaskID != "7" || p.Items != 6 || p.TotalItems != 10 || p.Bytes != 150 {
		t.Errorf("%+v", p)
	}
	// The present second is no whole one.
	for m.Progress("7").ItemsPerSecond == 0 {
		if time.Since(began) > 3*time.Second {
			t.Fatal("it never tells a rate")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if rate := m.Progress("7").ItemsPerSecond; rate != 6/rateSeconds {
		t.Errorf("rate %d", rate)
	}
}
