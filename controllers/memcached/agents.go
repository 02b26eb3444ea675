package memcached

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// Agents answers for shards.
type Agents interface {
	// Status returns what the agent of the pod with that address tells.
	Status(ctx context.Context, podIP string) (agentapi.Status, error)
}

const (
	// agentTimeout bounds one question. Agents answer within milliseconds; one that
	// does not is asked again later.
	agentTimeout = 2 * time.Second
	// maxStatusBytes bounds an answer, which is about 1 KB.
	maxStatusBytes = 64 << 10
)

// HTTPAgents asks agents over the network.
type HTTPAgents struct{ client http.Client }

// NewHTTPAgents returns a client of agents that keeps no connection open: a
// shard is asked once a start.
func NewHTTPAgents() *HTTPAgents {
	return &HTTPAgents{client: http.Client{
		Timeout:   agentTimeout,
		Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil},
	}}
}

// Status implements Agents.
func (a *HTTPAgents) Status(ctx context.Context, podIP string) (agentapi.Status, error) {
	url := "http://" + net.JoinHostPort(podIP, strconv.Itoa(agentapi.Port)) + "/status"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return agentapi.Status{}, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return agentapi.Status{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return agentapi.Status{}, fmt.Errorf("asking the agent at %s: %s", podIP, response.Status)
	}
	var status agentapi.Status
	if err := json.NewDecoder(io.LimitReader(response.Body, maxStatusBytes)).Decode(&status); err != nil {
		return agentapi.Status{}, fmt.Errorf("reading the answer of the agent at %s: %w", podIP, err)
	}
	return status, nil
}
