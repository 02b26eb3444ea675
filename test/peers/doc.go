// Package peers tests the agent and the snapshot program with the programs of others: client libraries in Python and Go,
// Thanos, an S3 server, promtool and memcached_exporter.
package peers
