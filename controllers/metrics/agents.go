// Package metrics exports what the statuses of Memcacheds contain.
package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// scrapeTimeout bounds a read of the cache, which blocks until the manager has started.
const scrapeTimeout = 5 * time.Second

var agents = prometheus.NewDesc("memcached_operator_shard_agents",
	"Number of shards whose agent is that of this release of the operator (current is true) or of another one (false).", []string{"current"}, nil)

// Agents is a collector that exports how many shards run another release's agent. The versions are in the
// statuses: in a metric, anyone who can run a pod could add series.
type Agents struct {
	// Cache contains the Memcacheds.
	Cache client.Reader
	// Elected is closed once this operator is the leader. Another one exports nothing.
	Elected <-chan struct{}
	// Version of the operator.
	Version string
}

// Describe implements prometheus.Agents.
func (c *Agents) Describe(descs chan<- *prometheus.Desc) { descs <- agents }

// Collect implements prometheus.Agents.
func (c *Agents) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-c.Elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var all v1alpha1.MemcachedList
	if err := c.Cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		log.Log.WithName("metrics").Error(err, "Listing Memcacheds for the metrics")
		return
	}
	counts := map[bool]int{true: 0, false: 0}
	for i := range all.Items {
		for _, s := range all.Items[i].Status.Shards {
			if s.AgentVersion != "" {
				counts[s.AgentVersion == c.Version]++
			}
		}
	}
	for current, n := range counts {
		metrics <- prometheus.MustNewConstMetric(agents, prometheus.GaugeValue, float64(n), strconv.FormatBool(current))
	}
}
