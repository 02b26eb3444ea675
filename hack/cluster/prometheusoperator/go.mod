// The CRDs of prometheus-operator, which tests read from its module. The tool keeps it required.
module github.com/memcached-operator/memcached-operator/hack/cluster/prometheusoperator

go 1.26.0

tool github.com/prometheus-operator/prometheus-operator/pkg/versionutil

require github.com/prometheus-operator/prometheus-operator v0.93.1 // indirect

require (
	github.com/alecthomas/kingpin/v2 v2.4.0 // indirect
	github.com/alecthomas/units v0.0.0-20240927000941-0f3dac36c52b // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/xhit/go-str2duration/v2 v2.1.0 // indirect
)
