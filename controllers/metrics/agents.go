package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

var agents = prometheus.NewDesc("memcached_operator_shard_agents",
	"Number of shards whose agent is that of this release of the operator (current is true) or of another one (false).", []string{"current"}, nil)

// Agents is a collector that exports how many shards run another release's agent. The versions
// are in the statuses: in a metric, anyone who can run a pod could add series.
type Agents struct {
	Source
	// Version of the operator.
	Version string
}

// Describe implements prometheus.Collector.
func (c *Agents) Describe(descs chan<- *prometheus.Desc) { descs <- agents }

// Collect implements prometheus.Collector.
func (c *Agents) Collect(metrics chan<- prometheus.Metric) {
	var all v1beta1.MemcachedList
	if !c.List(&all) {
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
