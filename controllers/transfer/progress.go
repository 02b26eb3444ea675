package transfer

import (
	"context"
	"net"
	"strconv"

	"github.com/memcached-operator/memcached-operator/internal/podhttp"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// ProgressClient reads the progress of a Job from its pod.
type ProgressClient interface {
	Progress(ctx context.Context, podIP string) (snapshotwire.Progress, error)
}

// HTTPProgress is a ProgressClient over the network.
type HTTPProgress struct{}

// Progress returns what a Job's pod reports.
func (HTTPProgress) Progress(ctx context.Context, podIP string) (snapshotwire.Progress, error) {
	return podhttp.Get[snapshotwire.Progress](ctx, net.JoinHostPort(podIP, strconv.Itoa(snapshotwire.Port)), snapshotwire.ProgressPath)
}
