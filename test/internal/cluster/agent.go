package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// AgentStatus asks the agent of a pod.
func AgentStatus(ctx context.Context, pod corev1.Pod) (agentapi.Status, error) {
	url := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(agentapi.Port)) + "/status"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return agentapi.Status{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return agentapi.Status{}, fmt.Errorf("asking the agent of pod %s: %w", pod.Name, err)
	}
	defer response.Body.Close()
	var status agentapi.Status
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		return agentapi.Status{}, fmt.Errorf("reading the answer of the agent of pod %s: %w", pod.Name, err)
	}
	return status, nil
}
