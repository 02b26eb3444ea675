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
	if err := s.add([]byte("of a dump that broke off"), 1, 3); err != nil {
		t.Fatal(err)
	}
	if err := s.clear(); err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	for i := range n {
		if err := s.add(fmt.Appendf(nil, "key-%d\x00\n", i), int64(i), i*7%ages); err != nil {
			t.Fatal(err)
		}
	}
	if s.keys != n {
		t.Errorf("%d keys, not %d", s.keys, n)
	}
	seen := 0
	last, lastAge := -1, -1
	for {
		key, size, err := s.next()
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

func TestTimesToLiveGetOlder(t *testing.T) {
	for request, want := range map[string]string{
		"ms key 5 T100 F5 ME\r\nvalue\r\n":     "ms key 5 T93 F5 ME\r\nvalue\r\n",
		"ms key 5\r\nvalue\r\n":                "ms key 5\r\nvalue\r\n",
		"ms T100 5 T100\r\nT100 \r\n":          "ms T100 5 T93\r\nT100 \r\n",
		"ms a2V5 5 T8 b\r\n\r\n T9\r\n":        "ms a2V5 5 T1 b\r\n\r\n T9\r\n",
		"ms key 5 T7\r\nvalue\r\n":             "ms key 5 T1\r\nvalue\r\n",
		"ms key 5 T2592000\r\nvalue\r\n":       "ms key 5 T2591993\r\nvalue\r\n",
		"ms key 5 T1795274628 ME\r\nvalue\r\n": "ms key 5 T1795274628 ME\r\nvalue\r\n",
	} {
		if got := appendAged(nil, []byte(request), 7); string(got) != want {
			t.Errorf("%q became %q, want %q", request, got, want)
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
