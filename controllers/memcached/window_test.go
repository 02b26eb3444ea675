package memcached

import (
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// window is written as "Saturday,Sunday 02:00 180 Europe/Berlin"; the days and the
// zone may be left out.
func window(t *testing.T, text string) v1alpha1.MaintenanceWindow {
	t.Helper()
	w := v1alpha1.MaintenanceWindow{}
	for _, word := range strings.Fields(text) {
		switch minutes, err := time.ParseDuration(word + "m"); {
		case err == nil:
			w.DurationMinutes = int32(minutes.Minutes())
		case strings.Contains(word, ":"):
			w.Start = word
		case strings.Contains(word, "/") || word == "UTC":
			w.TimeZone = word
		default:
			for day := range strings.SplitSeq(word, ",") {
				w.Days = append(w.Days, v1alpha1.Weekday(day))
			}
		}
	}
	return w
}

// 2026-03-29 and 2026-10-25, both Sundays, are when daylight saving time begins and
// ends in Berlin. Windows that do not name a zone are in UTC.
func TestAWindowOpensWhenItSays(t *testing.T) {
	for _, c := range []struct {
		name    string
		windows []string
		now     string
		want    time.Duration
	}{
		{"none is always open", nil, "2026-11-18T12:00:00Z", 0},

		{"before", []string{"02:00 60"}, "2026-11-18T01:59:59Z", time.Second},
		{"as it opens", []string{"02:00 60"}, "2026-11-18T02:00:00Z", 0},
		{"as it closes", []string{"02:00 60"}, "2026-11-18T02:59:59Z", 0},
		{"closed", []string{"02:00 60"}, "2026-11-18T03:00:00Z", 23 * time.Hour},

		{"on its day", []string{"Saturday 02:00 60"}, "2026-11-21T02:30:00Z", 0},
		{"on another day", []string{"Saturday 02:00 60"}, "2026-11-18T02:30:00Z", 2*24*time.Hour + 23*time.Hour + 30*time.Minute},
		{"in a week", []string{"Saturday 02:00 60"}, "2026-11-21T03:00:00Z", 7*24*time.Hour - time.Hour},
		{"on one of its days", []string{"Monday,Thursday 02:00 60"}, "2026-11-18T03:00:00Z", 23 * time.Hour},

		{"over midnight, before it", []string{"Saturday 23:00 120"}, "2026-11-21T23:30:00Z", 0},
		{"over midnight, after it", []string{"Saturday 23:00 120"}, "2026-11-22T00:30:00Z", 0},
		{"over midnight, when it closes", []string{"Saturday 23:00 120"}, "2026-11-22T01:00:00Z", 6*24*time.Hour + 22*time.Hour},
		{"over midnight into a day of its own", []string{"Sunday 23:00 120"}, "2026-11-22T00:30:00Z", 22*time.Hour + 30*time.Minute},
		{"over the end of a month and a year", []string{"23:00 120"}, "2027-01-01T00:30:00Z", 0},

		{"for a day, each day", []string{"02:00 1440"}, "2026-11-18T01:59:59Z", 0},
		{"for a day, on one day", []string{"Wednesday 02:00 1440"}, "2026-11-19T01:59:59Z", 0},
		{"for a day, on one day, when it closes", []string{"Wednesday 02:00 1440"}, "2026-11-19T02:00:00Z", 6 * 24 * time.Hour},

		{"the first of several", []string{"04:00 60", "02:00 60"}, "2026-11-18T01:00:00Z", time.Hour},
		{"one of several is open", []string{"Saturday 04:00 60", "02:00 60"}, "2026-11-18T02:30:00Z", 0},

		{"another zone, in winter", []string{"02:00 60 Europe/Berlin"}, "2026-11-18T00:30:00Z", 30 * time.Minute},
		{"another zone, in summer", []string{"02:00 60 Europe/Berlin"}, "2026-07-15T00:30:00Z", 0},
		{"another zone, another day", []string{"Thursday 02:00 60 Asia/Tokyo"}, "2026-11-18T17:30:00Z", 0},
		{"another zone, another day, behind", []string{"Wednesday 22:00 60 America/New_York"}, "2026-11-19T03:30:00Z", 0},
		{"another zone than the clock's", []string{"02:00 60"}, "2026-11-18T03:30:00+01:00", 0},
		{"a zone of half an hour", []string{"02:00 60 Asia/Kolkata"}, "2026-11-17T20:30:00Z", 0},

		// From 02:00 to 03:00 there is no time on that day.
		{"spring: before it", []string{"01:00 60 Europe/Berlin"}, "2026-03-28T23:30:00Z", 30 * time.Minute},
		{"spring: over the gap it is as long as ever", []string{"01:30 60 Europe/Berlin"}, "2026-03-29T01:29:59Z", 0},
		{"spring: over the gap it closes by the clock that runs on", []string{"01:30 60 Europe/Berlin"}, "2026-03-29T01:30:00Z", 22 * time.Hour},
		{"spring: a start that there is not opens after the gap", []string{"02:30 60 Europe/Berlin"}, "2026-03-29T01:00:00Z", 30 * time.Minute},
		{"spring: and is as long as ever", []string{"02:30 60 Europe/Berlin"}, "2026-03-29T02:29:59Z", 0},
		{"spring: the day after", []string{"02:30 60 Europe/Berlin"}, "2026-03-29T02:30:00Z", 22 * time.Hour},
		{"spring: a day is still 24 hours", []string{"Saturday 23:59 1440 Europe/Berlin"}, "2026-03-29T22:30:00Z", 0},
		{"spring: and ends", []string{"Saturday 23:59 1440 Europe/Berlin"}, "2026-03-29T22:59:00Z", 5*24*time.Hour + 23*time.Hour},

		// From 02:00 to 03:00 comes twice on that day.
		{"autumn: a start that comes twice is not the first", []string{"02:30 30 Europe/Berlin"}, "2026-10-25T00:30:00Z", time.Hour},
		{"autumn: but the second", []string{"02:30 30 Europe/Berlin"}, "2026-10-25T01:30:00Z", 0},
		{"autumn: the day after", []string{"02:30 30 Europe/Berlin"}, "2026-10-25T02:00:00Z", 23*time.Hour + 30*time.Minute},
		{"autumn: over the hour that comes twice it is as long as ever", []string{"01:30 60 Europe/Berlin"}, "2026-10-25T00:30:00Z", 24 * time.Hour},
		{"autumn: a day is 24 hours of 25", []string{"Sunday 00:00 1440 Europe/Berlin"}, "2026-10-25T22:30:00Z", 6*24*time.Hour + 30*time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, c.now)
			if err != nil {
				t.Fatal(err)
			}
			var windows []v1alpha1.MaintenanceWindow
			for _, text := range c.windows {
				windows = append(windows, window(t, text))
			}
			if got, err := opensIn(windows, now); err != nil || got != c.want {
				t.Errorf("it opens in %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// Whatever time it is: waiting as long as it says leads into a window, and no
// window is missed on the way.
func TestAWindowIsOpenWhenItWasWaitedFor(t *testing.T) {
	for _, text := range []string{
		"02:30 30 Europe/Berlin", "Sunday 02:30 60 Europe/Berlin", "Saturday 23:59 1440 Europe/Berlin", "Monday,Friday 00:00 1 America/New_York", "22:00 240 Australia/Lord_Howe",
	} {
		windows := []v1alpha1.MaintenanceWindow{window(t, text)}
		for now := time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC); now.Year() == 2026; now = now.Add(17 * time.Minute) {
			wait, err := opensIn(windows, now)
			if err != nil || wait < 0 || wait > 7*24*time.Hour+time.Hour {
				t.Fatalf("%s at %s: %s, %v", text, now, wait, err)
			}
			if again, _ := opensIn(windows, now.Add(wait)); again != 0 {
				t.Fatalf("%s at %s opens in %s, and then in %s", text, now, wait, again)
			}
			if before, _ := opensIn(windows, now.Add(wait-time.Second)); wait > time.Second && before != time.Second {
				t.Fatalf("%s at %s opens in %s, and a second before that in %s", text, now, wait, before)
			}
		}
	}
}

func TestAWindowThatCannotBeUnderstoodIsToldOf(t *testing.T) {
	good := window(t, "02:00 60")
	for want, bad := range map[string]v1alpha1.MaintenanceWindow{
		`timeZone "Europe/Bonn" is not known`:   window(t, "02:00 60 Europe/Bonn"),
		`start "25:00" is not a time of day`:    window(t, "25:00 60"),
		`start "02:00:00" is not a time of day`: window(t, "02:00:00 60"),
	} {
		// An open one before it does not hide it.
		_, err := opensIn([]v1alpha1.MaintenanceWindow{good, bad}, time.Date(2026, 11, 18, 2, 30, 0, 0, time.UTC))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "spec.updateStrategy.maintenanceWindows") {
			t.Errorf("it is told as %v, want %s", err, want)
		}
	}
}
