package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// AgentStatus returns the status of the agent of a pod.
func AgentStatus(ctx context.Context, pod corev1.Pod) (agentwire.Status, error) {
	url := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(agentwire.Port)) + "/status"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return agentwire.Status{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return agentwire.Status{}, fmt.Errorf("reading the status of the agent of pod %s: %w", pod.Name, err)
	}
	defer response.Body.Close()
	var status agentwire.Status
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		return agentwire.Status{}, fmt.Errorf("reading the answer of the agent of pod %s: %w", pod.Name, err)
	}
	return status, nil
}
