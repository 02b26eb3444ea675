package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

const (
	drainInterval = 250 * time.Millisecond
	// endpointPropagation is the time until the proxies of all nodes use the other pod.
	endpointPropagation = time.Second
	// missingNames is how many successive lookups must not find the Service's name: a
	// single one can be a name server that is starting.
	missingNames = 2
)

// Drain waits until the Service leads to another pod in a phase, or does not exist, or ctx ends, and returns the reason: until
// then the Service needs this pod. service is host:port, or empty if there is none.
func Drain(ctx context.Context, status QueryStatus, service, podUID string, phase wire.Phase, timeout time.Duration) string {
	if service == "" {
		return "there is no Service"
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d := drainer{podUID: podUID, phase: phase}
	for {
		reason, replaced := d.evaluate(status(ctx, service))
		if replaced {
			_ = peerlink.Sleep(ctx, endpointPropagation)
		}
		if reason != "" {
			return reason
		}
		if peerlink.Sleep(ctx, drainInterval) != nil {
			return fmt.Sprintf("no other pod responded at %s within %s", service, timeout)
		}
	}
}

// drainer evaluates one response of the Service after the other.
type drainer struct {
	podUID  string
	phase   wire.Phase
	missing int
}

// evaluate returns why the drain is over, empty while it is not, and reports whether
// another pod is in the phase.
func (d *drainer) evaluate(status wire.Status, err error) (reason string, replaced bool) {
	if isNotFound(err) {
		if d.missing++; d.missing >= missingNames {
			return "the Service is deleted: its name does not resolve", false
		}
		return "", false
	}
	d.missing = 0
	if err == nil && status.PodUID != "" && status.PodUID != d.podUID && status.Phase == d.phase {
		return "pod " + status.PodUID + " serves behind the Service", true
	}
	return "", false
}
