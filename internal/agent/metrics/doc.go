// Package metrics writes the metrics of one shard in the text format of Prometheus:
// memcached's with the names, labels and meaning of memcached_exporter 0.16, so that
// dashboards and alerts for it work unchanged, and the agent's own.
//
// It is written by hand: with the Prometheus libraries the agent would have 10 MB instead
// of 8 MB. The tables of this package are the reference, from which docs/monitoring-metrics.md
// is generated.
package metrics
