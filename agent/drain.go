package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

const (
	drainInterval = 250 * time.Millisecond
	// drainSettling is for the nodes' proxies, which learn of the other pod one
	// after the other.
	drainSettling = time.Second
	// drainMissing is how many answers in a row must say that the name does not
	// exist: one can be a name server that starts.
	drainMissing = 2
)

// drain waits until this pod is no longer needed at its Service, and returns why.
func drain(ctx context.Context, service, podUID string, timeout time.Duration) string {
	if service == "" {
		return "there is no Service to wait at"
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d := drainer{podUID: podUID}
	for {
		status, err := askService(ctx, service)
		if why, settle := d.look(status, err); why != "" {
			if settle {
				sleep(ctx, drainSettling)
			}
			return why
		}
		if !sleep(ctx, drainInterval) {
			return fmt.Sprintf("nobody else answered at %s for %s", service, timeout)
		}
	}
}

// drainer decides on one answer after the other.
type drainer struct {
	podUID  string
	missing int
}

// look returns why the wait is over, empty while it is not, and whether others
// need a moment more.
func (d *drainer) look(status agentapi.Status, err error) (why string, settle bool) {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		if d.missing++; d.missing >= drainMissing {
			return "the Service is gone: its name no longer resolves", false
		}
		return "", false
	case err != nil:
	case status.PodUID != "" && status.PodUID != d.podUID && status.Phase == agentapi.PhaseServing:
		return "pod " + status.PodUID + " serves at the Service", true
	}
	d.missing = 0
	return "", false
}

// askService asks whichever agent is behind the Service. Each time over a new
// connection, since an open one stays with the pod that took it.
func askService(ctx context.Context, service string) (status agentapi.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+service+"/status", nil)
	if err != nil {
		return status, err
	}
	response, err := serviceClient.Do(request)
	if err != nil {
		var dns *net.DNSError
		if errors.As(err, &dns) && !dns.IsNotFound {
			dns.IsNotFound = isUnknown(ctx, request.URL.Hostname(), searchDomains(resolvConf), net.DefaultResolver.LookupHost)
		}
		return status, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return status, fmt.Errorf("asking at %s: %s", service, response.Status)
	}
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&status)
	return status, err
}

// serviceClient knows no proxy: what it asks for is in the cluster.
var serviceClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// sleep returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
