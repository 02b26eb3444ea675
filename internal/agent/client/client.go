// Package client queries agents over HTTP.
package client

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// timeout bounds one query. Agents answer within milliseconds; one that doesn't is queried
// again later.
const timeout = 2 * time.Second

// HTTP queries agents over HTTP.
type HTTP struct{ client http.Client }

// NewHTTP returns a client that keeps no connections open: an agent is queried once a start.
func NewHTTP() *HTTP {
	return &HTTP{client: http.Client{
		Timeout:   timeout,
		Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil},
	}}
}

// Status returns the status that the agent of the pod with that address reports.
func (h *HTTP) Status(ctx context.Context, podIP string) (wire.Status, error) {
	return wire.FetchStatus(ctx, &h.client, net.JoinHostPort(podIP, strconv.Itoa(wire.Port)))
}
