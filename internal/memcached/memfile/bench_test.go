package memfile

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkScan reads 1M items of 500 bytes from a file in memory.
func BenchmarkScan(b *testing.B) {
	const items, size, class = 1_000_000, 500, 9
	l := layout(b, "-m", "600")
	dir, err := os.MkdirTemp("/dev/shm", "memfile-") //nolint:usetesting // b.TempDir is on a disk
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "memory")
	out, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := out.Truncate(l.size); err != nil {
		b.Fatal(err)
	}
	written := 0
	for at := int64(0); at < l.size && written < items; at += pageSize {
		page := make([]byte, pageSize)
		for start := 0; start+l.chunks[class] <= pageSize && written < items; start += l.chunks[class] {
			chunk := page[start:]
			key := fmt.Sprintf("key-%d", written)
			binary.NativeEndian.PutUint32(chunk[atTime:], 62+rand.Uint32N(1_000_000))
			binary.NativeEndian.PutUint32(chunk[atLength:], size+2)
			binary.NativeEndian.PutUint16(chunk[atFlags:], flagLinked|flagCAS)
			chunk[atClass], chunk[atKeyLen] = class, byte(len(key))
			copy(chunk[headerSize+8:], key)
			copy(chunk[headerSize+8+len(key)+1+size:], lineEnd)
			written++
		}
		if _, err := out.WriteAt(page, at); err != nil {
			b.Fatal(err)
		}
	}
	if err := out.Close(); err != nil || written != items {
		b.Fatal(written, err)
	}
	f, err := Open(path, l)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.Run("sample", func(b *testing.B) {
		for b.Loop() {
			if report, err := f.Sample(Clock{Now: 2_000_000}, 0, 4096, func(Sampled) {}); err != nil || report.Items < 3500 {
				b.Fatal(report, err)
			}
		}
	})
	for _, c := range []struct {
		name string
		scan func(Clock, func(*Item) error) (Report, error)
	}{{"in memory order", f.Scan}, {"coldest first", f.ScanColdFirst}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(items * size)
			b.ReportAllocs()
			var sum int
			for b.Loop() {
				report, err := c.scan(Clock{Now: 2_000_000}, func(item *Item) error {
					sum += int(item.Value[size/2]) + len(item.Key)
					return nil
				})
				if err != nil || report.Items != items || report.Unreadable != 0 {
					b.Fatal(report, err)
				}
			}
			b.ReportMetric(float64(items*b.N)/b.Elapsed().Seconds(), "items/s")
		})
	}
}
