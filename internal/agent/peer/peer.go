// Package peer is what an agent has to do with the other pod of its shard: it waits until that one serves, and hands the
// items over to it, as the source, or receives them, as the target.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/clusterdns"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/podhttp"
)

// Config is what both roles know of this pod.
type Config struct {
	PodUID, DataDir string
	// Service is the host:port of the agent behind the shard's Service.
	Service string
	// Key is the path of the key that the shard's pods share.
	Key string
	// Listen is the address at which the source accepts targets.
	Listen string
	// Owner distinguishes the shard from an earlier one of its name.
	Owner string
	// Mode is that in which this pod receives items.
	Mode wire.Mode
	// ScalingKey is the path of the key that all shards share; empty if keys can't move between them.
	ScalingKey string
	// Ordinal is that of the shard.
	Ordinal int
	// Serving returns the memory of a memcached that serves clients, and what identifies its process; nil if none does.
	Serving func() (memory *Memory, run string)
	// State returns what the target's agent gets together with the items.
	State func() map[string][]byte
}

// Port is where other pods get items of this one.
type Port struct {
	Number int
	// Scaling is whether pods of other shards get some there.
	Scaling bool
}

// Network is how an agent reaches the other pod of its shard.
type Network struct {
	Status  QueryStatus
	Receive func(context.Context, handover.Target) (handover.Result, error)
	// Accepts returns whether the other pod still accepts connections.
	Accepts func(ctx context.Context, address string) bool
}

// TCP is the network of a pod.
var TCP = Network{Status: queryService, Receive: handover.Receive, Accepts: accepts}

// isNotFound returns whether a name server says that there is no such name.
func isNotFound(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}

// QueryStatus returns the status of a pod behind a Service.
type QueryStatus func(ctx context.Context, service string) (wire.Status, error)

// queryService is a QueryStatus over the network.
func queryService(ctx context.Context, service string) (wire.Status, error) {
	return podhttp.Get[wire.Status](ctx, clusterdns.Absolute(service), wire.StatusPath)
}

func readKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the handover: %w", err)
	}
	if len(key) == 0 {
		return nil, fmt.Errorf("the key of the handover in %s is empty", path)
	}
	return key, nil
}
