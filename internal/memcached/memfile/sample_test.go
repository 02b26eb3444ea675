package memfile

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"testing"
)

// The recorded file has one item of 1.2 MB in three large chunks, a few small ones, and
// expired and flushed ones.
func TestSampleOfARecordedFile(t *testing.T) {
	data, clock := memory(t)
	f := &File{reader: bytes.NewReader(data), layout: layout(t, recorded...)}
	large := offsets(t, f)["large"]
	first, _ := f.layout.firstChunk(data[large:], int64(large))

	// The memory of chunks with items, counted by reading all of them.
	want := int64(0)
	s := scan{file: f, clock: clock}
	if err := s.walk(func(offset int64, chunk []byte) error {
		if s.skip {
			return nil
		}
		want += int64(len(chunk))
		if flagsOf(chunk)&flagChunked == 0 {
			return nil
		}
		for next := first.next; next != 0; {
			at := int(next - first.base)
			want += int64(f.layout.chunks[data[at+atClass]&classBits])
			next = binary.NativeEndian.Uint64(data[at+atNext:])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	const places = 100_000
	sum, report := sample(t, f, clock, first.base, places)
	if math.Abs(float64(sum-want)) > 0.02*float64(want) || report.Unreadable != 0 || report.Skipped == 0 {
		t.Errorf("%d bytes, want %d: %+v", sum, want, report)
	}
	largest := 0.0
	if _, err := f.Sample(clock, first.base, places, func(s Sampled) { largest = max(largest, float64(s.Bytes)/s.Items) }); err != nil || largest < 1.2e6 || largest > 1.3e6 {
		t.Errorf("an item of %.0f bytes, want 1.2 MB, %v", largest, err)
	}
	for name, base := range map[string]uint64{"unknown": 0, "wrong": first.base + uint64(f.layout.size)} {
		without, report := sample(t, f, clock, base, places)
		if report.Unreadable == 0 || without >= sum/2 {
			t.Errorf("with a base that is %s: %d bytes, %+v", name, without, report)
		}
	}

	clock.OldestLive = clock.Now
	if sum, report := sample(t, f, clock, first.base, places); sum != 0 || report.Items != 0 || report.Skipped == 0 {
		t.Errorf("after flush_all: %d bytes, %+v", sum, report)
	}
}

func sample(t *testing.T, f *File, clock Clock, base uint64, places int) (sum int64, report Report) {
	t.Helper()
	report, err := f.Sample(clock, base, places, func(s Sampled) { sum += s.Bytes })
	if err != nil {
		t.Fatal(err)
	}
	return sum, report
}

// A sample reads what memcached changes at the same time.
func TestSampleOfRandomBytesTerminates(t *testing.T) {
	data, clock := memory(t)
	random, err := os.ReadFile(os.Args[0]) // this program
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] ^= random[(i*31)%len(random)]
	}
	f := &File{reader: bytes.NewReader(data), layout: layout(t, recorded...)}
	if _, report := sample(t, f, clock, 1<<40, 20_000); report.Unreadable == 0 {
		t.Errorf("%+v", report)
	}
	f.reader = bytes.NewReader(data[:len(data)/2])
	if _, err := f.Sample(clock, 0, 20_000, func(Sampled) {}); err == nil {
		t.Error("a file that has become shorter is no error")
	}
}
