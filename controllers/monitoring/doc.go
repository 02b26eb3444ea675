// Package monitoring creates what prometheus-operator and Grafana read: a PodMonitor and a
// PrometheusRule in each namespace that has a Memcached, a ServiceMonitor and a PrometheusRule for
// the operator itself, and the ConfigMaps of the dashboards.
//
// The CRDs may be missing, and may come and go while the operator runs: the controller asks the API
// server every few minutes which of them exist, and watches those. It compares what exists with what
// it would apply and writes only a difference. It modifies and deletes only objects with the label
// app.kubernetes.io/managed-by: memcached-operator.
//
// The controller is separate from that of the Memcacheds: whatever fails here delays no shard.
package monitoring
