package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPercentIsNeverRoundedUpTo100(t *testing.T) {
	for parts, want := range map[[2]int64]string{{7, 7}: "100%", {11, 10}: "100%", {99_999, 100_000}: "99.9%", {0, 3}: "0.0%", {2, 3}: "66.6%",
		{0, 0}: "100%", {-1, 0}: "100%", {-1, 3}: "0.0%", {1<<60 - 1, 1 << 60}: "99.9%", {1 << 60, 1 << 61}: "50.0%"} {
		if got := Percent(parts[0], parts[1]); got != want {
			t.Errorf("%d of %d: got %s, want %s", parts[0], parts[1], got, want)
		}
	}
}

func TestThousandsGroupsDigits(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 120_431: "120,431", 1_234_567: "1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTruncateCutsBetweenRunesWithinTheLimit(t *testing.T) {
	for _, message := range []string{strings.Repeat("a", 200), strings.Repeat("€", 200), "x" + strings.Repeat("𝄞", 99)} {
		got := Truncate(message, 128)
		if len(got) > 128 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") || len(got) < 120 {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
	if got := Truncate("short", 128); got != "short" {
		t.Errorf("got %q", got)
	}
}
