package memcached

import (
	"fmt"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// opensIn returns the time until one of the maintenance windows is open: 0 when
// one is, or when there are none. A window is as long as it says by the clock that
// runs on, also where daylight saving time begins or ends in it.
func opensIn(windows []v1alpha1.MaintenanceWindow, now time.Time) (time.Duration, error) {
	if len(windows) == 0 {
		return 0, nil
	}
	soonest := time.Duration(-1)
	for _, w := range windows {
		zone, err := time.LoadLocation(w.TimeZone)
		if err != nil {
			return 0, fmt.Errorf("spec.updateStrategy.maintenanceWindows: timeZone %q is not known; use one such as Europe/Berlin", w.TimeZone)
		}
		start, err := time.Parse("15:04", w.Start)
		if err != nil {
			return 0, fmt.Errorf("spec.updateStrategy.maintenanceWindows: start %q is not a time of day such as 02:00", w.Start)
		}
		local := now.In(zone)
		// One of 24 hours that began late on the day before yesterday may be open still,
		// where yesterday had 23; and the next may be a week away.
		for day := -2; day <= 7; day++ {
			opens := time.Date(local.Year(), local.Month(), local.Day()+day, start.Hour(), start.Minute(), 0, 0, zone)
			closes := opens.Add(time.Duration(w.DurationMinutes) * time.Minute)
			if !now.Before(closes) || len(w.Days) > 0 && !slices.Contains(w.Days, v1alpha1.Weekday(opens.Weekday().String())) {
				continue
			}
			if wait := max(opens.Sub(now), 0); soonest < 0 || wait < soonest {
				soonest = wait
			}
		}
	}
	return soonest, nil
}
