package backup

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/metrics"
)

// finished returns a backup of cache that finished at a second since 1970.
func finished(name string, phase v1beta1.TransferPhase, second int64, items int64) *v1beta1.MemcachedBackup {
	b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	b.Spec.MemcachedRef.Name = "cache"
	b.Status.Phase = phase
	b.Status.StartTime = &metav1.Time{Time: time.Unix(second-30, 0)}
	if phase != v1beta1.TransferRunning {
		b.Status.CompletionTime = &metav1.Time{Time: time.Unix(second, 0)}
	}
	if phase == v1beta1.TransferComplete {
		b.Status.Snapshot = &v1beta1.SnapshotStatus{SnapshotTime: metav1.NewTime(time.Unix(second-20, 0)), Items: items, Bytes: 2 * items, StoredBytes: items / 2}
	}
	return b
}

func TestMetricsDescribeLatestBackup(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		finished("b", v1beta1.TransferComplete, 2000, 100), finished("a", v1beta1.TransferComplete, 1000, 50), finished("c", v1beta1.TransferFailed, 3000, 0), finished("d", v1beta1.TransferRunning, 4000, 0),
	).Build()
	elected := make(chan struct{})
	collector := &Collector{metrics.Source{Cache: cache, Elected: elected}}
	if got := scrape(t, collector); len(got) != 0 {
		t.Errorf("an operator that is not the leader exports %v", got)
	}
	close(elected)
	want := []string{
		"memcached_operator_backup_last_bytes[memcached=cache namespace=team] 200",
		"memcached_operator_backup_last_completion_timestamp_seconds[memcached=cache namespace=team] 2000",
		"memcached_operator_backup_last_duration_seconds[memcached=cache namespace=team] 30",
		"memcached_operator_backup_last_items[memcached=cache namespace=team] 100",
		"memcached_operator_backup_last_result[memcached=cache namespace=team result=Complete] 0",
		"memcached_operator_backup_last_result[memcached=cache namespace=team result=Failed] 1",
		"memcached_operator_backup_last_snapshot_timestamp_seconds[memcached=cache namespace=team] 1980",
		"memcached_operator_backup_last_stored_bytes[memcached=cache namespace=team] 50",
		"memcached_operator_backup_running[memcached=cache namespace=team] 1",
	}
	if diff := cmp.Diff(want, scrape(t, collector)); diff != "" {
		t.Errorf("the metrics (-want +got):\n%s", diff)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := cache.Delete(t.Context(), finished(name, "", 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if got := scrape(t, collector); len(got) != 0 {
		t.Errorf("metrics of deleted backups: %v", got)
	}
}

// scrape returns what Prometheus would read.
func scrape(t *testing.T, c prometheus.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		if family.GetHelp() == "" {
			t.Errorf("%s has no help", family.GetName())
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			lines = append(lines, fmt.Sprintf("%s%v %.0f", family.GetName(), labels, metric.GetGauge().GetValue()))
		}
	}
	return lines
}
