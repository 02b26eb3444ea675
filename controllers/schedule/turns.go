package schedule

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// turns tells when the turns of a schedule are.
type turns struct {
	spec *cron.SpecSchedule
	zone *time.Location
}

// everyHour is the bit by which the parser marks a field that is *.
const everyHour = 1 << 63

// parse reads a schedule. When it cannot, it returns the reason and a sentence of
// what to write instead.
func parse(s v1alpha1.MemcachedScheduledBackupSpec, now time.Time) (t turns, reason, message string) {
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil || s.TimeZone == "Local" {
		return t, v1alpha1.ReasonTimeZoneUnknown, fmt.Sprintf("there is no time zone %q: write one of the IANA's database, such as Europe/Berlin, or UTC", s.TimeZone)
	}
	const advice = `write five fields for minute, hour, day of month, month and day of week, such as "30 2 * * *", or @hourly, @daily, @weekly, @monthly`
	parsed, err := cron.ParseStandard(s.Schedule)
	if err != nil {
		return t, v1alpha1.ReasonScheduleInvalid, fmt.Sprintf("schedule %q cannot be read: %v: %s", s.Schedule, err, advice)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return t, v1alpha1.ReasonScheduleInvalid, fmt.Sprintf("schedule %q has no times of its own, as it counts from when the operator starts: %s", s.Schedule, advice)
	}
	t = turns{spec, zone}
	if t.next(now).IsZero() {
		return t, v1alpha1.ReasonScheduleInvalid, fmt.Sprintf("schedule %q has no turn in the next five years: %s", s.Schedule, advice)
	}
	return t, "", ""
}

// next returns the first turn after a time; zero when there is none within five years.
func (t turns) next(after time.Time) time.Time {
	spec := *t.spec
	if spec.Hour&everyHour != 0 {
		spec.Location = t.zone
		return spec.Next(after.In(t.zone))
	}
	// The clock on the wall, as if it were one of UTC, which never changes.
	spec.Location = time.UTC
	wall := asWall(after.In(t.zone))
	for {
		if wall = spec.Next(wall); wall.IsZero() {
			return wall
		}
		if turn := whenShown(wall, t.zone); turn.After(after) {
			return turn
		}
	}
}

// asWall returns what a clock shows, as a time of UTC.
func asWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// whenShown returns when the clock of a zone first shows this, or when it skips it.
func whenShown(wall time.Time, zone *time.Location) time.Time {
	_, before := wall.Add(-24 * time.Hour).In(zone).Zone()
	_, after := wall.Add(24 * time.Hour).In(zone).Zone()
	// A clock that goes forward has the greater offset, in seconds, after it; one that
	// goes back shows first what it shows with the greater one.
	first := wall.Add(-time.Duration(max(before, after)) * time.Second).In(zone)
	second := wall.Add(-time.Duration(min(before, after)) * time.Second).In(zone)
	switch {
	case asWall(first).Equal(wall):
		return first
	case asWall(second).Equal(wall):
		return second
	}
	skip, _ := second.ZoneBounds()
	return skip
}

// spans are how far back the last turn is looked for: first not far, as there may be
// one every minute.
var spans = []time.Duration{time.Hour, 25 * time.Hour, 32 * 24 * time.Hour, 6 * 366 * 24 * time.Hour}

// last returns the last turn that is after one time and not after another, or zero.
func (t turns) last(after, now time.Time) time.Time {
	for _, span := range spans {
		from := now.Add(-span)
		if from.Before(after) {
			from = after
		}
		var last time.Time
		for turn := t.next(from); !turn.IsZero() && !turn.After(now); turn = t.next(turn) {
			last = turn
		}
		if !last.IsZero() || from.Equal(after) {
			return last
		}
	}
	return time.Time{}
}
