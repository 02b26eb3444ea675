// Package metrics exports what the statuses of Memcacheds contain.
package metrics

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// scrapeTimeout bounds a read of the cache, which blocks until the manager has started.
const scrapeTimeout = 5 * time.Second

// Source is where collectors read at each scrape, so that no metric outlives its objects.
type Source struct {
	// Cache contains the objects.
	Cache client.Reader
	// Elected is closed once this operator is the leader. Another one exports nothing.
	Elected <-chan struct{}
}

// List reads all objects of a kind, and reports whether there is something to export. The
// objects belong to the cache.
func (s Source) List(all client.ObjectList) bool {
	if !isClosed(s.Elected) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	err := s.Cache.List(ctx, all, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.Log.WithName("metrics").Error(err, "Listing objects for the metrics", "list", fmt.Sprintf("%T", all))
	}
	return err == nil
}

// isClosed reports whether this operator is the leader.
func isClosed(elected <-chan struct{}) bool {
	select {
	case <-elected:
		return true
	default:
		return false
	}
}

// Operator returns collectors of what this operator itself is.
func Operator(version string, elected <-chan struct{}) []prometheus.Collector {
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "memcached_operator_build_info", Help: "1 for the release of the operator.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()}})
	build.Set(1)
	return []prometheus.Collector{build, prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "memcached_operator_leader", Help: "1 if this operator is the one that acts, 0 if it waits for the lease."},
		func() float64 { return number(isClosed(elected)) })}
}
