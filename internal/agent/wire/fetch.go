package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// maxStatusBytes bounds a response, which is about 1 KB.
const maxStatusBytes = 64 << 10

// FetchStatus gets the status of the agent at a host:port address.
func FetchStatus(ctx context.Context, client *http.Client, address string) (Status, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/status", nil)
	if err != nil {
		return Status{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return Status{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Status{}, fmt.Errorf("status of the agent at %s: %s", address, response.Status)
	}
	var status Status
	if err := json.NewDecoder(io.LimitReader(response.Body, maxStatusBytes)).Decode(&status); err != nil {
		return Status{}, fmt.Errorf("reading the status of the agent at %s: %w", address, err)
	}
	return status, nil
}
