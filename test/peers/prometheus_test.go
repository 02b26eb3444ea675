package peers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// What dashboards and alerts for memcached_exporter ask has an answer.
func TestQueriesOfExporterDashboardsHaveData(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Run()
	pods.Traffic(t, s.Address())
	config, address := filepath.Join(s.Dir, "prometheus.yml"), fmt.Sprintf("127.0.0.1:%d", pods.FreePort(t))
	pods.WriteFile(t, config, fmt.Sprintf(`{scrape_configs: [{job_name: memcached, scrape_interval: 1s, scrape_timeout: 1s, params: {slabs: ["true"]}, static_configs: [{targets: [%q]}]}]}`, s.MetricsAddress()))
	startProgram(t, "PROMETHEUS", "--config.file", config, "--storage.tsdb.path", filepath.Join(s.Dir, "tsdb"), "--web.listen-address", address)
	for _, query := range []string{
		`memcached_up{job="memcached"} == 1`,
		`max_over_time(memcached_current_connections[1m]) / on (instance) memcached_max_connections`,
		`sum by (job, instance, slab) (increase(memcached_slab_items_outofmemory_total[1m]))`,
		`sum by (instance) (rate(memcached_commands_total{command="get", status="hit"}[1m])) / sum by (instance) (memcached_commands_total{command="get"})`,
		`sum by (command, status) (rate(memcached_commands_total[1m]))`,
		`memcached_current_bytes / memcached_limit_bytes`,
		`rate(memcached_items_evicted_total[1m])`,
		`rate(memcached_read_bytes_total[1m]) + rate(memcached_written_bytes_total[1m])`,
		`rate(memcached_connections_total[1m])`,
		`count by (version) (memcached_version)`,
		`min by (instance) (memcached_uptime_seconds)`,
		`sum(memcached_current_items)`,
		`sum by (slab) (memcached_slab_chunks_used * memcached_slab_chunk_size_bytes - memcached_slab_mem_requested_bytes)`,
		`histogram_quantile(0.99, sum by (le) (memcached_agent_probe_duration_seconds_bucket))`,
	} {
		waitForData(t, "http://"+address+"/api/v1/query?query="+url.QueryEscape(query), query)
	}
}

// waitForData waits until a query has a result.
func waitForData(t *testing.T, address, query string) {
	t.Helper()
	var last string
	if !pods.Eventually(func() bool {
		response, err := http.Get(address)
		if err != nil { // Prometheus is starting
			last = err.Error()
			return false
		}
		var answer struct {
			Error string
			Data  struct{ Result []json.RawMessage }
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		_ = response.Body.Close()
		last = answer.Error
		return err == nil && len(answer.Data.Result) > 0
	}) {
		t.Errorf("%s has no data: %s", query, last)
	}
}
