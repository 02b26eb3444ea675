// Package process tests the agent, internal/memcached/protocol and internal/snapshot against real memcached processes of
// several versions, without a cluster.
package process
