package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// The metrics of each MemcachedScheduledBackup.
var (
	lastSuccess = scheduleDesc("last_success_timestamp_seconds",
		"Time at which a backup of the schedule last became Complete, or at which the schedule was created if none did, in seconds since 1970.")
	nextRun = scheduleDesc("next_timestamp_seconds", "Time of the schedule's next run, in seconds since 1970. It is absent while the schedule is suspended.")
	period  = scheduleDesc("period_seconds", "Seconds between the schedule's last run and its next one. It is absent while the schedule is suspended.")
)

func scheduleDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("memcached_operator_schedule_"+name, help, []string{"namespace", "memcached", "schedule"}, nil)
}

// Schedules is a collector that exports when each schedule last succeeded.
type Schedules struct{ Source }

// Describe implements prometheus.Collector.
func (c *Schedules) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lastSuccess, nextRun, period} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Schedules) Collect(to chan<- prometheus.Metric) {
	var all v1beta1.MemcachedScheduledBackupList
	if !c.List(&all) {
		return
	}
	for i := range all.Items {
		s := &all.Items[i]
		gauge := func(d *prometheus.Desc, value float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, s.Namespace, s.Spec.BackupTemplate.Spec.MemcachedRef.Name, s.Name)
		}
		success := s.CreationTimestamp
		if s.Status.LastSuccessfulTime != nil {
			success = *s.Status.LastSuccessfulTime
		}
		gauge(lastSuccess, float64(success.Unix()))
		next, last := s.Status.NextScheduleTime, s.Status.LastScheduleTime
		if next == nil {
			continue
		}
		gauge(nextRun, float64(next.Unix()))
		if last != nil {
			gauge(period, next.Sub(last.Time).Seconds())
		}
	}
}
