package backup

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/metrics"
)

var memcachedLabels = []string{"namespace", "memcached"}

// The metrics of each Memcached that has a backup. A series disappears with the last
// backup that it is about.
var (
	lastCompletion = desc("last_completion_timestamp_seconds",
		"Time at which the latest complete MemcachedBackup of the Memcached finished, in seconds since 1970.")
	lastTaken = desc("last_snapshot_timestamp_seconds",
		"Time at which the snapshot of the latest complete MemcachedBackup was started, in seconds since 1970.")
	lastItems    = desc("last_items", "Number of items in the snapshot of the latest complete MemcachedBackup.")
	lastBytes    = desc("last_bytes", "Bytes of keys and values in the snapshot of the latest complete MemcachedBackup.")
	lastStored   = desc("last_stored_bytes", "Bytes that the snapshot of the latest complete MemcachedBackup takes in its store.")
	lastDuration = desc("last_duration_seconds", "Duration of the latest complete MemcachedBackup.")
	lastResult   = desc("last_result",
		"1 for the result of the MemcachedBackup of the Memcached that finished last, 0 for the other one.", "result")
	running = desc("running", "Number of MemcachedBackups of the Memcached that are running.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("memcached_operator_backup_"+name, help, append(slices.Clone(memcachedLabels), labels...), nil)
}

// Collector exports metrics about the latest backups of each Memcached.
type Collector struct{ metrics.Source }

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lastCompletion, lastTaken, lastItems, lastBytes, lastStored, lastDuration, lastResult, running} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	var backups v1beta1.MemcachedBackupList
	if !c.List(&backups) {
		return
	}
	for key, latest := range latestOf(backups.Items) {
		latest.collect(to, key)
	}
}

type memcachedKey struct{ namespace, name string }

// latestBackups are the backups of a Memcached that its metrics are about.
type latestBackups struct {
	// complete is the latest backup that is Complete, and finished the backup that finished last.
	complete, finished *v1beta1.MemcachedBackup
	running            int
}

func latestOf(backups []v1beta1.MemcachedBackup) map[memcachedKey]*latestBackups {
	all := map[memcachedKey]*latestBackups{}
	for i := range backups {
		b := &backups[i]
		key := memcachedKey{b.Namespace, b.Spec.MemcachedRef.Name}
		latest := all[key]
		if latest == nil {
			latest = &latestBackups{}
			all[key] = latest
		}
		switch {
		case b.Status.Phase == v1beta1.TransferRunning:
			latest.running++
		case b.Status.IsFinished() && b.Status.CompletionTime != nil:
			if isLater(b, latest.finished) {
				latest.finished = b
			}
			if b.Status.Phase == v1beta1.TransferComplete && isLater(b, latest.complete) {
				latest.complete = b
			}
		}
	}
	return all
}

// isLater reports whether a backup finished after another one, or there is no other.
func isLater(b, other *v1beta1.MemcachedBackup) bool {
	if other == nil {
		return true
	}
	d := b.Status.CompletionTime.Compare(other.Status.CompletionTime.Time)
	return d > 0 || d == 0 && strings.Compare(b.Name, other.Name) > 0
}

func (n *latestBackups) collect(to chan<- prometheus.Metric, key memcachedKey) {
	gauge := func(d *prometheus.Desc, value float64, more ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{key.namespace, key.name}, more...)...)
	}
	gauge(running, float64(n.running))
	if n.finished != nil {
		for _, result := range []v1beta1.TransferPhase{v1beta1.TransferComplete, v1beta1.TransferFailed} {
			value := 0.0
			if n.finished.Status.Phase == result {
				value = 1
			}
			gauge(lastResult, value, string(result))
		}
	}
	if b := n.complete; b != nil {
		gauge(lastCompletion, float64(b.Status.CompletionTime.Unix()))
		if start := b.Status.StartTime; start != nil {
			gauge(lastDuration, b.Status.CompletionTime.Sub(start.Time).Seconds())
		}
		if s := b.Status.Snapshot; s != nil {
			gauge(lastTaken, float64(s.SnapshotTime.Unix()))
			gauge(lastItems, float64(s.Items))
			gauge(lastBytes, float64(s.Bytes))
			gauge(lastStored, float64(s.StoredBytes))
		}
	}
}
