// Package client queries agents over HTTP.
package client

import (
	"context"
	"net"
	"strconv"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/podhttp"
)

// HTTP queries agents over HTTP.
type HTTP struct{}

// Status returns the status that the agent of the pod with that address reports.
func (HTTP) Status(ctx context.Context, podIP string) (wire.Status, error) {
	return podhttp.Get[wire.Status](ctx, net.JoinHostPort(podIP, strconv.Itoa(wire.Port)), wire.StatusPath)
}
