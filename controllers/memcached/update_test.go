package memcached

import "testing"

func TestAShareIsNeverRoundedUpToAll(t *testing.T) {
	for _, c := range []struct {
		items, of int64
		want      string
	}{{0, 10, "0.0 %"}, {999_999, 1_000_000, "99.9 %"}, {10, 10, "100 %"}, {11, 10, "100 %"}, {1, 3, "33.3 %"}} {
		if got := percent(c.items, c.of); got != c.want {
			t.Errorf("%d of %d is told as %s, want %s", c.items, c.of, got, c.want)
		}
	}
}

func TestThousandsAreGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 120431: "120,431", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is told as %s", n, got)
		}
	}
}
