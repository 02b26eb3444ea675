package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// ProgressClient reads the progress of a Job from its pod.
type ProgressClient interface {
	Progress(ctx context.Context, podIP string) (snapshotwire.Progress, error)
}

// progressTimeout bounds a request: a pod that does not answer must not delay others.
const progressTimeout = 2 * time.Second

// HTTPProgress is a ProgressClient over the network.
type HTTPProgress struct {
	client *http.Client
	port   string
}

// NewHTTPProgress returns a ProgressClient over the network. It ignores the proxy of the
// environment, as pods are in the cluster.
func NewHTTPProgress() HTTPProgress {
	client := &http.Client{Timeout: progressTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	return HTTPProgress{client, strconv.Itoa(snapshotwire.Port)}
}

// Progress returns what a Job's pod reports.
func (h HTTPProgress) Progress(ctx context.Context, podIP string) (snapshotwire.Progress, error) {
	var progress snapshotwire.Progress
	url := "http://" + net.JoinHostPort(podIP, h.port) + "/progress"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return progress, err
	}
	response, err := h.client.Do(request)
	if err != nil {
		return progress, fmt.Errorf("requesting the progress: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return progress, fmt.Errorf("requesting the progress: %s answered %s", url, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&progress); err != nil {
		return progress, fmt.Errorf("decoding the progress: %w", err)
	}
	return progress, nil
}
