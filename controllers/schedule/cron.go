package schedule

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// parse returns a schedule in its time zone. If the schedule is invalid, parse returns the
// reason, and a message that says what to write instead.
func parse(s v1beta1.MemcachedScheduledBackupSpec, now time.Time) (runs *cron.SpecSchedule, reason, message string) {
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil || s.TimeZone == "Local" {
		return nil, v1beta1.ReasonTimeZoneUnknown,
			fmt.Sprintf("time zone %q does not exist. Use a name of the IANA database, such as Europe/Berlin, or UTC", s.TimeZone)
	}
	const advice = `Write five fields for minute, hour, day of month, month and day of week, such as "30 2 * * *", or @hourly, @daily, @weekly, @monthly`
	parsed, err := cron.ParseStandard(s.Schedule)
	if err != nil {
		return nil, v1beta1.ReasonScheduleInvalid, fmt.Sprintf("schedule %q is invalid: %v. %s", s.Schedule, err, advice)
	}
	runs, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, v1beta1.ReasonScheduleInvalid,
			fmt.Sprintf("schedule %q depends on when the operator starts. %s", s.Schedule, advice)
	}
	runs.Location = zone
	if runs.Next(now).IsZero() {
		return nil, v1beta1.ReasonScheduleInvalid,
			fmt.Sprintf("schedule %q has no run in the next five years. %s", s.Schedule, advice)
	}
	return runs, "", ""
}

// spans are how far back lastRun searches. The first are short, as there may be a run
// every minute.
var spans = []time.Duration{time.Hour, 25 * time.Hour, 32 * 24 * time.Hour, 6 * 366 * 24 * time.Hour}

// lastRun returns the last run after one time and not after another, or zero.
func lastRun(runs cron.Schedule, after, now time.Time) time.Time {
	for _, span := range spans {
		from := now.Add(-span)
		if from.Before(after) {
			from = after
		}
		var last time.Time
		for run := runs.Next(from); !run.IsZero() && !run.After(now); run = runs.Next(run) {
			last = run
		}
		if !last.IsZero() || from.Equal(after) {
			return last
		}
	}
	return time.Time{}
}
