package backup

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// scrapeTimeout bounds the reading of the cache at a scrape, which has none before the
// manager has started.
const scrapeTimeout = 5 * time.Second

// memcachedLabels are the labels of a metric that tells of a Memcached's newest backup.
var memcachedLabels = []string{"namespace", "memcached"}

// The metrics of each Memcached that has a backup. A series goes with the last
// backup that it tells of.
var (
	lastCompletion = prometheus.NewDesc("memcached_operator_backup_last_completion_timestamp_seconds",
		"When the newest MemcachedBackup of the Memcached that is Complete ended, in seconds since 1970.", memcachedLabels, nil)
	lastTaken = prometheus.NewDesc("memcached_operator_backup_last_snapshot_timestamp_seconds",
		"When the snapshot of the newest MemcachedBackup that is Complete was begun, in seconds since 1970.", memcachedLabels, nil)
	lastItems = prometheus.NewDesc("memcached_operator_backup_last_items",
		"How many items the snapshot of the newest MemcachedBackup that is Complete holds.", memcachedLabels, nil)
	lastBytes = prometheus.NewDesc("memcached_operator_backup_last_bytes",
		"How many bytes of keys and values it holds.", memcachedLabels, nil)
	lastStored = prometheus.NewDesc("memcached_operator_backup_last_stored_bytes",
		"How many bytes it takes in its store.", memcachedLabels, nil)
	lastDuration = prometheus.NewDesc("memcached_operator_backup_last_duration_seconds",
		"How long the newest MemcachedBackup that is Complete took.", memcachedLabels, nil)
	lastResult = prometheus.NewDesc("memcached_operator_backup_last_result",
		"1 for the result of the MemcachedBackup of the Memcached that ended last, 0 for the other one.", []string{"namespace", "memcached", "result"}, nil)
	running = prometheus.NewDesc("memcached_operator_backup_running",
		"How many MemcachedBackups of the Memcached run.", memcachedLabels, nil)
)

// Collector tells Prometheus of the newest backup of each Memcached. It reads the
// cache when it is asked, so that nothing is told of what is gone.
type Collector struct {
	// Cache holds the backups.
	Cache client.Reader
	// Acts is closed once this operator is the one that acts: one that waits for the
	// lease tells nothing.
	Acts <-chan struct{}
}

// Describe tells which metrics there are.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lastCompletion, lastTaken, lastItems, lastBytes, lastStored, lastDuration, lastResult, running} {
		to <- d
	}
}

// Collect tells their values.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.Acts:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var backups v1alpha1.MemcachedBackupList
	if err := c.Cache.List(ctx, &backups, client.UnsafeDisableDeepCopy); err != nil {
		log.Log.WithName("metrics").Error(err, "listing backups for the metrics")
		return
	}
	for of, n := range newestOf(backups.Items) {
		n.tell(to, of)
	}
}

// memcachedKey names a Memcached.
type memcachedKey struct{ namespace, name string }

// newest is what there is to tell of a Memcached's backups.
type newest struct {
	// complete is the newest that is Complete, ended the one that ended last.
	complete, ended *v1alpha1.MemcachedBackup
	running         int
}

// newestOf returns what there is to tell of each Memcached that has a backup.
func newestOf(backups []v1alpha1.MemcachedBackup) map[memcachedKey]*newest {
	all := map[memcachedKey]*newest{}
	for i := range backups {
		b := &backups[i]
		key := memcachedKey{b.Namespace, b.Spec.Memcached.Name}
		n := all[key]
		if n == nil {
			n = &newest{}
			all[key] = n
		}
		switch {
		case b.Status.Phase == v1alpha1.RunRunning:
			n.running++
		case snapshotjob.HasEnded(b.Status.RunStatus) && b.Status.CompletionTime != nil:
			if endsAfter(b, n.ended) {
				n.ended = b
			}
			if b.Status.Phase == v1alpha1.RunComplete && endsAfter(b, n.complete) {
				n.complete = b
			}
		}
	}
	return all
}

// endsAfter says whether a backup ended after another one, or there is no other.
func endsAfter(b, other *v1alpha1.MemcachedBackup) bool {
	if other == nil {
		return true
	}
	d := b.Status.CompletionTime.Compare(other.Status.CompletionTime.Time)
	return d > 0 || d == 0 && strings.Compare(b.Name, other.Name) > 0
}

// tell tells the values of one Memcached.
func (n *newest) tell(to chan<- prometheus.Metric, of memcachedKey) {
	gauge := func(d *prometheus.Desc, value float64, more ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{of.namespace, of.name}, more...)...)
	}
	gauge(running, float64(n.running))
	if n.ended != nil {
		for _, result := range []v1alpha1.RunPhase{v1alpha1.RunComplete, v1alpha1.RunFailed} {
			value := 0.0
			if n.ended.Status.Phase == result {
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
			gauge(lastTaken, float64(s.TakenAt.Unix()))
			gauge(lastItems, float64(s.Items))
			gauge(lastBytes, float64(s.Bytes))
			gauge(lastStored, float64(s.StoredBytes))
		}
	}
}
