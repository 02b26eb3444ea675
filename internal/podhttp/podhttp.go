// Package podhttp gets JSON from the programs in the operator's pods.
package podhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// ReconcileWait bounds the time in which a worker of the operator waits for pods. A program answers within milliseconds, on a
// node whose processors are busy within hundreds of them, and a second later if the first packet was lost.
const ReconcileWait = 1500 * time.Millisecond

const (
	// timeout bounds a request. A program answers within milliseconds; one that doesn't must
	// not delay others.
	timeout = 2 * time.Second
	// connectTimeout bounds the connection. The kernel of the pod's node accepts it within milliseconds, or a second later
	// if the first packet was lost. Some networks drop the packets to a Service without a ready pod instead of rejecting
	// them, for which each attempt of a new pod to find the former one waits.
	connectTimeout = 1200 * time.Millisecond
	// maxBytes bounds an answer, which is about 1 KB.
	maxBytes = 64 << 10
)

var dialer = &net.Dialer{Timeout: connectTimeout}

// client opens a connection for each request, since an open one to a Service stays with
// the pod that accepted it. It uses no proxy, since pods are in the cluster. It follows no
// redirect: a pod must not choose where the operator sends requests to.
var client = &http.Client{
	Timeout:       timeout,
	Transport:     &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Get returns the answer to GET path of the program at a host:port address.
func Get[T any](ctx context.Context, address, path string) (answer T, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return answer, err
	}
	response, err := client.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("%s of %s: %s", path, address, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxBytes)).Decode(&answer); err != nil {
		return answer, fmt.Errorf("reading %s of %s: %w", path, address, err)
	}
	return answer, nil
}
