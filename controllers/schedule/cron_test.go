package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // as in the operator's image, which has no other

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func spec(schedule, zone string) v1beta1.MemcachedScheduledBackupSpec {
	return v1beta1.MemcachedScheduledBackupSpec{Schedule: schedule, TimeZone: zone}
}

func TestRunsFollowTheirTimeZone(t *testing.T) {
	for name, test := range map[string]struct {
		schedule, zone, after string
		want                  []string
	}{
		"daily":                               {"30 2 * * *", "UTC", "2026-05-01T00:00:00Z", []string{"2026-05-01T02:30:00Z", "2026-05-02T02:30:00Z"}},
		"after a run comes the next":          {"30 2 * * *", "UTC", "2026-05-01T02:30:00Z", []string{"2026-05-02T02:30:00Z"}},
		"in a zone":                           {"30 2 * * *", "Europe/Berlin", "2026-05-01T00:00:00Z", []string{"2026-05-01T00:30:00Z"}},
		"a skipped time has no run":           {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"}},
		"nor have several skipped times":      {"*/15 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-30T00:00:00Z", "2026-03-30T00:15:00Z"}},
		"a repeated time has two runs":        {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		"the second one also after the first": {"30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", []string{"2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		"west of Greenwich, forward":          {"30 2 * * *", "America/New_York", "2026-03-08T00:00:00Z", []string{"2026-03-09T06:30:00Z", "2026-03-10T06:30:00Z"}},
		"west of Greenwich, back":             {"30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", []string{"2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"}},
		"half an hour, on Lord Howe, back":    {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z", "2026-04-05T15:15:00Z"}},
		"after the skipped hour":              {"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"}},
		"hourly, forward":                     {"@hourly", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		"hourly, back":                        {"0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		"every second hour, back":             {"0 */2 * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T03:00:00Z"}},
		"a skipped midnight has no run":       {"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", []string{"2026-04-24T21:00:00Z", "2026-04-25T21:00:00Z"}},
		"nor has it for a day of the week":    {"0 0 * * 5", "Africa/Cairo", "2026-04-20T12:00:00Z", []string{"2026-04-30T21:00:00Z"}},
		"the 29th of February":                {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		"weekly":                              {"@weekly", "UTC", "2026-05-01T00:00:00Z", []string{"2026-05-03T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			runs, reason, message := parse(spec(test.schedule, test.zone), at(t, test.after))
			if reason != "" {
				t.Fatal(reason, message)
			}
			var got []string
			now := at(t, test.after)
			for range test.want {
				now = runs.Next(now)
				got = append(got, now.UTC().Format(time.RFC3339))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the runs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDailyScheduleRunsOncePerDay goes through a year in several zones: a day on which the
// clock doesn't change has exactly one run, whatever the hour.
func TestDailyScheduleRunsOncePerDay(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Asia/Tehran", "UTC"} {
		for hour := range 24 {
			runs, reason, message := parse(spec(fmt.Sprintf("30 %d * * *", hour), zone), at(t, "2026-01-01T00:00:00Z"))
			if reason != "" {
				t.Fatal(reason, message)
			}
			days := map[string]int{}
			end := time.Date(2027, 1, 1, 0, 0, 0, 0, runs.Location)
			for run := runs.Next(time.Date(2025, 12, 31, 23, 59, 0, 0, runs.Location)); run.Before(end); run = runs.Next(run) {
				days[run.In(runs.Location).Format(time.DateOnly)]++
			}
			for day := time.Date(2026, 1, 1, 12, 0, 0, 0, runs.Location); day.Before(end); day = day.AddDate(0, 0, 1) {
				_, before := day.Add(-14 * time.Hour).Zone()
				_, after := day.Add(14 * time.Hour).Zone()
				if n := days[day.Format(time.DateOnly)]; n > 2 || n != 1 && before == after {
					t.Errorf("%s at %d:30: %d runs on %s", zone, hour, n, day.Format(time.DateOnly))
				}
			}
		}
	}
}

func TestParseRejectsInvalidSchedules(t *testing.T) {
	for name, test := range map[string]struct{ schedule, zone, reason, words string }{
		"nonsense":              {"every night", "UTC", v1beta1.ReasonScheduleInvalid, "five fields"},
		"six fields":            {"0 30 2 * * *", "UTC", v1beta1.ReasonScheduleInvalid, "expected exactly 5 fields"},
		"a minute of 61":        {"61 * * * *", "UTC", v1beta1.ReasonScheduleInvalid, "above maximum"},
		"relative to the start": {"@every 1h", "UTC", v1beta1.ReasonScheduleInvalid, "@hourly"},
		"at a restart":          {"@reboot", "UTC", v1beta1.ReasonScheduleInvalid, "five fields"},
		"never":                 {"0 0 31 2 *", "UTC", v1beta1.ReasonScheduleInvalid, "no run"},
		"nowhere":               {"@daily", "Europe/Bielefeld", v1beta1.ReasonTimeZoneUnknown, "Europe/Berlin"},
		"the zone of the node":  {"@daily", "Local", v1beta1.ReasonTimeZoneUnknown, "UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, reason, message := parse(spec(test.schedule, test.zone), at(t, "2026-01-01T00:00:00Z")); reason != test.reason || !strings.Contains(message, test.words) {
				t.Errorf("%s: %s", reason, message)
			}
		})
	}
}

func TestLastRunSearchesYearsBack(t *testing.T) {
	now := at(t, "2026-05-01T12:00:30Z")
	for name, test := range map[string]struct {
		schedule, after, want string
	}{
		"a minute ago":                {"* * * * *", "2024-01-01T00:00:00Z", "2026-05-01T12:00:00Z"},
		"yesterday":                   {"0 13 * * *", "2026-01-01T00:00:00Z", "2026-04-30T13:00:00Z"},
		"last year":                   {"0 0 1 6 *", "2020-01-01T00:00:00Z", "2025-06-01T00:00:00Z"},
		"none since":                  {"0 13 * * *", "2026-04-30T13:00:00Z", ""},
		"the run that it starts from": {"0 * * * *", "2026-05-01T12:00:00Z", ""},
	} {
		runs, _, _ := parse(spec(test.schedule, "UTC"), now)
		got := ""
		if last := lastRun(runs, at(t, test.after), now); !last.IsZero() {
			got = last.UTC().Format(time.RFC3339)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
