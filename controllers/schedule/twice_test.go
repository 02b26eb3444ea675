package schedule

import (
	"testing"
	"time"
)

// From 01:00 UTC on a clock in Berlin shows once more what it has shown for an hour.
func TestATurnIsNotTakenAgainWhenTheClockShowsItAgain(t *testing.T) {
	at := func(day, hour, minute int) time.Time {
		return time.Date(2026, time.October, day, hour, minute, 0, 0, time.UTC)
	}
	turns, reason, message := parse(spec("30 2 * * *", "Europe/Berlin"), at(24, 12, 0))
	if reason != "" {
		t.Fatal(reason, message)
	}
	turn, next := at(25, 0, 30), at(26, 1, 30)
	for _, c := range []struct {
		name        string
		after, want time.Time
	}{
		{"before it", at(25, 0, 29), turn},
		{"at it", turn, next},
		{"when the clock goes back", at(25, 1, 0), next},
		{"just before the clock shows it again", at(25, 1, 29), next},
		{"when the clock shows it again", at(25, 1, 30), next},
	} {
		if got := turns.next(c.after); !got.Equal(c.want) {
			t.Errorf("%s, at %s: the next turn is at %s, want %s", c.name, c.after, got, c.want)
		}
	}
	if got := turns.last(at(25, 1, 10), at(25, 1, 50)); !got.IsZero() {
		t.Errorf("in the second of the two hours there was a turn at %s", got)
	}
}
