package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// metrics are the operator's, as a monitoring system reads them.
type metrics struct {
	url, token string
	client     http.Client
}

func newMetrics(url string) *metrics {
	// its certificate is of its own making, as in a cluster
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // see above
	return &metrics{url: url, client: http.Client{Transport: transport, Timeout: metricsTimeout}}
}

// gauges are what is read of the metrics.
type gauges struct {
	// Reconciles of Memcacheds that ended, with or without an error, and Queued the
	// Memcacheds that are to be reconciled or are being.
	Reconciles, Queued int
	// Workers is how many may be reconciled at once.
	Workers int
}

func (m *metrics) read(ctx context.Context) (gauges, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url, nil)
	if err != nil {
		return gauges{}, err
	}
	request.Header.Set("Authorization", "Bearer "+m.token)
	response, err := m.client.Do(request)
	if err != nil {
		return gauges{}, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return gauges{}, fmt.Errorf("reading the operator's metrics: %s", response.Status)
	}
	return parseGauges(response.Body)
}

// parseGauges reads the text format of Prometheus.
func parseGauges(from io.Reader) (gauges, error) {
	var g gauges
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, labels, value := sample(lines.Text())
		if !strings.Contains(labels, `controller="memcached"`) {
			continue
		}
		var to *int
		switch name {
		case "controller_runtime_reconcile_total":
			to = &g.Reconciles
		case "workqueue_depth", "controller_runtime_active_workers":
			to = &g.Queued
		case "controller_runtime_max_concurrent_reconciles":
			to = &g.Workers
		default:
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return gauges{}, fmt.Errorf("reading the metric %s: %w", name, err)
		}
		*to += int(n)
	}
	return g, lines.Err()
}

// sample splits a line such as name{label="value"} 1 into its parts; of a comment it
// returns none.
func sample(line string) (name, labels, value string) {
	if strings.HasPrefix(line, "#") {
		return "", "", ""
	}
	name, rest, ok := strings.Cut(line, "{")
	if !ok {
		return "", "", ""
	}
	end := strings.LastIndexByte(rest, '}')
	if end < 0 {
		return "", "", ""
	}
	value, _, _ = strings.Cut(strings.TrimSpace(rest[end+1:]), " ")
	return name, rest[:end], value
}

// metricsTimeout bounds a look at the metrics of an operator that is busy.
const metricsTimeout = 20 * time.Second
