// Package process tests the agent, internal/memcached/protocol and internal/snapshot against real memcached processes of
// several versions, without a cluster.
//
// The test of a trap of memcached has two halves: what memcached does alone, and what
// it does under the agent. The first half shows that the second can fail.
package process
