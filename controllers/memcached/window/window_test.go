package window

import (
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/exhaustive"
)

// window parses a window such as "Saturday,Sunday 02:00 180m Europe/Berlin". The days and the
// zone are optional.
func window(t *testing.T, text string) v1beta1.MaintenanceWindow {
	t.Helper()
	w := v1beta1.MaintenanceWindow{}
	for _, word := range strings.Fields(text) {
		switch duration, err := time.ParseDuration(word); {
		case err == nil:
			w.DurationSeconds = int32(duration.Seconds())
		case strings.Contains(word, ":"):
			w.Start = word
		case strings.Contains(word, "/") || word == "UTC":
			w.TimeZone = word
		default:
			for day := range strings.SplitSeq(word, ",") {
				w.Days = append(w.Days, v1beta1.Weekday(day))
			}
		}
	}
	return w
}

// Daylight saving time begins in Berlin on Sunday, 2026-03-29, and ends on Sunday, 2026-10-25.
// Windows without a zone are in UTC.
func TestWindowOpensAtItsTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		windows []string
		now     string
		want    time.Duration
	}{
		{"no window", nil, "2026-11-18T12:00:00Z", 0},

		{"before", []string{"02:00 60m"}, "2026-11-18T01:59:59Z", time.Second},
		{"when it opens", []string{"02:00 60m"}, "2026-11-18T02:00:00Z", 0},
		{"just before it closes", []string{"02:00 60m"}, "2026-11-18T02:59:59Z", 0},
		{"closed", []string{"02:00 60m"}, "2026-11-18T03:00:00Z", 23 * time.Hour},

		{"on its day", []string{"Saturday 02:00 60m"}, "2026-11-21T02:30:00Z", 0},
		{"on another day", []string{"Saturday 02:00 60m"}, "2026-11-18T02:30:00Z", 2*24*time.Hour + 23*time.Hour + 30*time.Minute},
		{"in a week", []string{"Saturday 02:00 60m"}, "2026-11-21T03:00:00Z", 7*24*time.Hour - time.Hour},
		{"on one of its days", []string{"Monday,Thursday 02:00 60m"}, "2026-11-18T03:00:00Z", 23 * time.Hour},

		{"over midnight, before it", []string{"Saturday 23:00 120m"}, "2026-11-21T23:30:00Z", 0},
		{"over midnight, after it", []string{"Saturday 23:00 120m"}, "2026-11-22T00:30:00Z", 0},
		{"over midnight, when it closes", []string{"Saturday 23:00 120m"}, "2026-11-22T01:00:00Z", 6*24*time.Hour + 22*time.Hour},
		{"over midnight into another of its days", []string{"Sunday 23:00 120m"}, "2026-11-22T00:30:00Z", 22*time.Hour + 30*time.Minute},
		{"over the end of a month and a year", []string{"23:00 120m"}, "2027-01-01T00:30:00Z", 0},

		{"for a day, each day", []string{"02:00 1440m"}, "2026-11-18T01:59:59Z", 0},
		{"for a day, on one day", []string{"Wednesday 02:00 1440m"}, "2026-11-19T01:59:59Z", 0},
		{"for a day, on one day, when it closes", []string{"Wednesday 02:00 1440m"}, "2026-11-19T02:00:00Z", 6 * 24 * time.Hour},

		{"the first of several", []string{"04:00 60m", "02:00 60m"}, "2026-11-18T01:00:00Z", time.Hour},
		{"one of several is open", []string{"Saturday 04:00 60m", "02:00 60m"}, "2026-11-18T02:30:00Z", 0},

		{"another zone, in winter", []string{"02:00 60m Europe/Berlin"}, "2026-11-18T00:30:00Z", 30 * time.Minute},
		{"another zone, in summer", []string{"02:00 60m Europe/Berlin"}, "2026-07-15T00:30:00Z", 0},
		{"another zone, another day", []string{"Thursday 02:00 60m Asia/Tokyo"}, "2026-11-18T17:30:00Z", 0},
		{"another zone, another day, behind", []string{"Wednesday 22:00 60m America/New_York"}, "2026-11-19T03:30:00Z", 0},
		{"another zone than the clock's", []string{"02:00 60m"}, "2026-11-18T03:30:00+01:00", 0},
		{"a zone of half an hour", []string{"02:00 60m Asia/Kolkata"}, "2026-11-17T20:30:00Z", 0},

		// The hour from 02:00 to 03:00 is skipped on that day.
		{"spring: before it", []string{"01:00 60m Europe/Berlin"}, "2026-03-28T23:30:00Z", 30 * time.Minute},
		{"spring: as long as ever over the gap", []string{"01:30 60m Europe/Berlin"}, "2026-03-29T01:29:59Z", 0},
		{"spring: closes after its duration in elapsed time", []string{"01:30 60m Europe/Berlin"}, "2026-03-29T01:30:00Z", 22 * time.Hour},
		{"spring: a start in the gap opens after it", []string{"02:30 60m Europe/Berlin"}, "2026-03-29T01:00:00Z", 30 * time.Minute},
		{"spring: a start in the gap is as long as ever", []string{"02:30 60m Europe/Berlin"}, "2026-03-29T02:29:59Z", 0},
		{"spring: the day after", []string{"02:30 60m Europe/Berlin"}, "2026-03-29T02:30:00Z", 22 * time.Hour},
		{"spring: a day is still 24 hours", []string{"Saturday 23:59 1440m Europe/Berlin"}, "2026-03-29T22:30:00Z", 0},
		{"spring: a day closes after 24 hours", []string{"Saturday 23:59 1440m Europe/Berlin"}, "2026-03-29T22:59:00Z", 5*24*time.Hour + 23*time.Hour},
		// 2026-03-08 in New York.
		{"spring, west of UTC: a start in the gap doesn't open before it", []string{"02:30 60m America/New_York"}, "2026-03-08T06:30:00Z", time.Hour},
		{"spring, west of UTC: a start in the gap is as long as ever", []string{"02:30 60m America/New_York"}, "2026-03-08T08:29:59Z", 0},
		// The hour from 00:00 to 01:00 is skipped on Sunday, 2026-09-06.
		{"spring: the day begins in the gap", []string{"Sunday 00:00 60m America/Santiago"}, "2026-09-06T03:30:00Z", 30 * time.Minute},
		{"spring: the next day begins in the gap", []string{"Saturday 00:00 60m America/Santiago"}, "2026-09-06T03:30:00Z", 6*24*time.Hour - 30*time.Minute},

		// The hour from 02:00 to 03:00 occurs twice on that day.
		{"autumn: a start that occurs twice doesn't open at the first", []string{"02:30 30m Europe/Berlin"}, "2026-10-25T00:30:00Z", time.Hour},
		{"autumn: a start that occurs twice opens at the second", []string{"02:30 30m Europe/Berlin"}, "2026-10-25T01:30:00Z", 0},
		{"autumn: the day after", []string{"02:30 30m Europe/Berlin"}, "2026-10-25T02:00:00Z", 23*time.Hour + 30*time.Minute},
		{"autumn: as long as ever over the repeated hour", []string{"01:30 60m Europe/Berlin"}, "2026-10-25T00:30:00Z", 24 * time.Hour},
		{"autumn: a day is 24 hours of 25", []string{"Sunday 00:00 1440m Europe/Berlin"}, "2026-10-25T22:30:00Z", 6*24*time.Hour + 30*time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, c.now)
			if err != nil {
				t.Fatal(err)
			}
			var windows []v1beta1.MaintenanceWindow
			for _, text := range c.windows {
				windows = append(windows, window(t, text))
			}
			if got, err := OpensIn(windows, now); err != nil || got != c.want {
				t.Errorf("opens in %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// At any time, waiting that long leads into a window, and no window is missed in between.
func TestWindowIsOpenAfterTheWait(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"02:30 30m Europe/Berlin", "Sunday 02:30 60m Europe/Berlin", "Saturday 23:59 1440m Europe/Berlin", "Monday,Friday 00:00 1m America/New_York", "22:00 240m Australia/Lord_Howe",
		"Sunday 00:00 60m America/Santiago",
	} {
		windows := []v1beta1.MaintenanceWindow{window(t, text)}
		for now := time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC); now.Year() == 2026; now = now.Add(time.Duration(exhaustive.OneIn(11)) * 17 * time.Minute) {
			wait, err := OpensIn(windows, now)
			if err != nil || wait < 0 || wait > 7*24*time.Hour+time.Hour {
				t.Fatalf("%s at %s: %s, %v", text, now, wait, err)
			}
			if again, _ := OpensIn(windows, now.Add(wait)); again != 0 {
				t.Fatalf("%s at %s opens in %s, and then in %s", text, now, wait, again)
			}
			if before, _ := OpensIn(windows, now.Add(wait-time.Second)); wait > time.Second && before != time.Second {
				t.Fatalf("%s at %s opens in %s, and a second before that in %s", text, now, wait, before)
			}
		}
	}
}

func TestInvalidWindowIsAnError(t *testing.T) {
	good := window(t, "02:00 60m")
	for want, bad := range map[string]v1beta1.MaintenanceWindow{
		`timeZone "Europe/Bonn" is unknown; use one such as Europe/Berlin`: window(t, "02:00 60m Europe/Bonn"),
		`start "25:00" is not a time of day such as 02:00`:                 window(t, "25:00 60m"),
		`start "02:00:00" is not a time of day such as 02:00`:              window(t, "02:00:00 60m"),
	} {
		// An open window before it doesn't hide it.
		_, err := OpensIn([]v1beta1.MaintenanceWindow{good, bad}, time.Date(2026, 11, 18, 2, 30, 0, 0, time.UTC))
		if err == nil || err.Error() != "spec.updateStrategy.maintenanceWindows: "+want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
