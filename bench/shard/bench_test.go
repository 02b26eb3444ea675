package shard

import (
	"strings"
	"testing"
)

func TestRowHasItemsAndMemory(t *testing.T) {
	f := filled{memory: 64 << 20, value: 500, plain: 1000, items: 990, file: 100 << 20, peak: 120 << 20, limit: 150 << 20, plainPeak: 70 << 20}
	if got, want := strings.Join(f.row(), " | "), "64Mi, 500 B | 1,000 | 990 | 99.0% | 100 MiB | 120 MiB (80%) | 150 MiB | 70 MiB"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for name, c := range map[string]struct {
		items, peak int64
		fails       bool
	}{"99%, and the complete limit": {990, f.limit, false}, "98.9%": {989, f.peak, true}, "more than the limit": {990, f.limit + 1, true}} {
		f := f
		if f.items, f.peak = c.items, c.peak; (f.check() != nil) != c.fails {
			t.Errorf("%s: %v", name, f.check())
		}
	}
}
