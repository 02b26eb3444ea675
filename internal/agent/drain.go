package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/clusterdns"
	"github.com/memcached-operator/memcached-operator/internal/podhttp"
)

const (
	drainInterval = 250 * time.Millisecond
	// endpointPropagation is the time until the proxies of all nodes use the other pod.
	endpointPropagation = time.Second
	// missingNames is how many successive lookups must not find the Service's name: a
	// single one can be a name server that is starting.
	missingNames = 2
)

// drainRun is one wait for another pod. A handover interrupts it.
type drainRun struct{ cancel context.CancelFunc }

type drainEnd struct {
	run    *drainRun
	reason string
}

// drain waits until the Service no longer needs this pod, and returns the reason.
func drain(ctx context.Context, status queryStatus, service, podUID string, timeout time.Duration) string {
	if service == "" {
		return "there is no Service"
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d := drainer{podUID: podUID}
	for {
		reason, replaced := d.evaluate(status(ctx, service))
		if replaced {
			sleep(ctx, endpointPropagation)
		}
		if reason != "" {
			return reason
		}
		if !sleep(ctx, drainInterval) {
			return fmt.Sprintf("no other pod responded at %s within %s", service, timeout)
		}
	}
}

// drainer evaluates one response of the Service after the other.
type drainer struct {
	podUID  string
	missing int
}

// evaluate returns why the drain is over, empty while it is not, and reports whether
// another pod serves.
func (d *drainer) evaluate(status wire.Status, err error) (reason string, replaced bool) {
	if isNotFound(err) {
		if d.missing++; d.missing >= missingNames {
			return "the Service is deleted: its name does not resolve", false
		}
		return "", false
	}
	d.missing = 0
	if err == nil && status.PodUID != "" && status.PodUID != d.podUID && status.Phase == wire.PhaseServing {
		return "pod " + status.PodUID + " serves behind the Service", true
	}
	return "", false
}

// isNotFound returns whether a name server says that there is no such name.
func isNotFound(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}

// queryStatus returns the status of a pod behind a Service.
type queryStatus func(ctx context.Context, service string) (wire.Status, error)

// queryService is a queryStatus over the network.
func queryService(ctx context.Context, service string) (wire.Status, error) {
	return podhttp.Get[wire.Status](ctx, clusterdns.Absolute(service), wire.StatusPath)
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
