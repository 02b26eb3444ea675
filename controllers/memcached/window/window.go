// Package window computes when a maintenance window opens.
package window

import (
	"fmt"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// OpensIn returns the time until a maintenance window opens: 0 when one is open, or
// when there are none. A window lasts its duration in elapsed time, even when daylight saving
// time begins or ends in it.
func OpensIn(windows []v1beta1.MaintenanceWindow, now time.Time) (time.Duration, error) {
	if len(windows) == 0 {
		return 0, nil
	}
	first := time.Duration(-1)
	for _, w := range windows {
		zone, err := time.LoadLocation(w.TimeZone)
		if err != nil {
			return 0, fmt.Errorf("spec.updateStrategy.maintenanceWindows: timeZone %q is unknown; use one such as Europe/Berlin", w.TimeZone)
		}
		start, err := time.Parse("15:04", w.Start)
		if err != nil {
			return 0, fmt.Errorf("spec.updateStrategy.maintenanceWindows: start %q is not a time of day such as 02:00", w.Start)
		}
		local := now.In(zone)
		// A window of 24 hours that opened late on the day before yesterday may still be open
		// when yesterday had 23 hours; and the next one may open in a week.
		for day := -2; day <= 7; day++ {
			wall := time.Date(local.Year(), local.Month(), local.Day()+day, start.Hour(), start.Minute(), 0, 0, time.UTC)
			opens := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, zone)
			// West of UTC, Date returns an earlier time, also of the day before, for one that daylight saving time skips.
			_, offset := opens.Zone()
			opens = opens.Add(max(wall.Sub(opens)-time.Duration(offset)*time.Second, 0))
			closes := opens.Add(time.Duration(w.DurationSeconds) * time.Second)
			if !now.Before(closes) || len(w.Days) > 0 && !slices.Contains(w.Days, v1beta1.Weekday(wall.Weekday().String())) {
				continue
			}
			if wait := max(opens.Sub(now), 0); first < 0 || wait < first {
				first = wait
			}
		}
	}
	return first, nil
}
