package scale

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
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

func parse(from io.Reader) (Gauges, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(from)
	if err != nil {
		return Gauges{}, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	sum := func(names ...string) int {
		total := 0.0
		for _, name := range names {
			for _, metric := range families[name].GetMetric() {
				for _, label := range metric.GetLabel() {
					if label.GetName() == "controller" && label.GetValue() == "memcached" {
						total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetUntyped().GetValue()
					}
				}
			}
		}
		return int(total)
	}
	return Gauges{
		Reconciles: sum("controller_runtime_reconcile_total"),
		Queued:     sum("workqueue_depth", "controller_runtime_active_workers"),
		Workers:    sum("controller_runtime_max_concurrent_reconciles"),
	}, nil
}
