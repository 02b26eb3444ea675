package scale

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Metrics reads the operator's metrics as a monitoring system does.
type Metrics struct {
	url, token string
	client     http.Client
}

// metricsTimeout is for an operator that is busy.
const metricsTimeout = 20 * time.Second

func newMetrics(url string) *Metrics {
	// The operator signs its certificate itself, as in a cluster.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // see above
	return &Metrics{url: url, client: http.Client{Transport: transport, Timeout: metricsTimeout}}
}

// Gauges are metrics of the controller of Memcacheds.
type Gauges struct {
	// Reconciles that finished, with or without an error, and Queued Memcacheds, with those being reconciled.
	Reconciles, Queued int
	// Workers is how many Memcacheds the controller reconciles in parallel. It is 0 until the controller starts.
	Workers int
}

// StartedWorkers returns Workers of a controller that has started.
func (g Gauges) StartedWorkers() (int, error) {
	if g.Workers < 1 {
		return 0, errors.New("the metric controller_runtime_max_concurrent_reconciles of the controller memcached is missing or 0")
	}
	return g.Workers, nil
}

// Read reads the metrics.
func (m *Metrics) Read(ctx context.Context) (Gauges, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url, nil)
	if err != nil {
		return Gauges{}, err
	}
	request.Header.Set("Authorization", "Bearer "+m.token)
	response, err := m.client.Do(request)
	if err != nil {
		return Gauges{}, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Gauges{}, fmt.Errorf("reading the operator's metrics: %s", response.Status)
	}
	return parse(response.Body)
}

func parse(from io.Reader) (g Gauges, err error) {
	into := map[string]*int{
		"controller_runtime_reconcile_total": &g.Reconciles, "workqueue_depth": &g.Queued, "controller_runtime_active_workers": &g.Queued,
		"controller_runtime_max_concurrent_reconciles": &g.Workers,
	}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), "{")
		labels, text, _ := strings.Cut(rest, "} ")
		if into[name] == nil || !strings.Contains(labels, `controller="memcached"`) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return g, fmt.Errorf("reading the operator's metric %s: %w", name, err)
		}
		*into[name] += int(value)
	}
	return g, lines.Err()
}
