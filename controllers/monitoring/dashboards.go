package monitoring

import (
	"encoding/json"
	"fmt"
)

// panel is a panel of a dashboard with its queries, by their legend.
type panel struct {
	title   string
	kind    string // timeseries, stat, table or state-timeline
	unit    string
	queries []query
}

type query struct{ expr, legend string }

// row is a row of panels that are beside each other.
type row struct {
	title     string
	collapsed bool
	panels    []panel
}

// selector selects the series of the Memcached and its shards.
const (
	ofShards    = `namespace=~"$namespace",memcached=~"$memcached",shard=~"$shard"`
	ofMemcached = `namespace=~"$namespace",memcached=~"$memcached"`
)

func series(title, unit string, queries ...query) panel {
	return panel{title, "timeseries", unit, queries}
}

func stat(title, unit, expr string) panel { return panel{title, "stat", unit, []query{{expr, ""}}} }

func table(title, expr string) panel { return panel{title, "table", "none", []query{{expr, ""}}} }

var memcachedRows = []row{
	{title: "At a glance", panels: []panel{
		stat("Shards ready", "none", `sum(memcached_operator_shards_ready{`+ofMemcached+`})`),
		stat("Shards desired", "none", `sum(memcached_operator_shards_desired{`+ofMemcached+`})`),
		stat("Hit ratio", "percentunit", `memcached:hit_ratio:rate5m{`+ofMemcached+`}`),
		stat("Requests per second", "reqps", `sum(rate(memcached_commands_total{`+ofShards+`}[$__rate_interval]))`),
		stat("Memory used for items", "percentunit", `sum(memcached_current_bytes{`+ofShards+`}) / sum(memcached_limit_bytes{`+ofShards+`})`),
		stat("Age of the last backup", "s", `time() - memcached_operator_backup_last_completion_timestamp_seconds{`+ofMemcached+`}`),
		table("Versions", `max by (shard, version) (memcached_version{`+ofShards+`})`),
		table("Firing alerts", `ALERTS{alertstate="firing",`+ofMemcached+`}`),
	}},
	{title: "Clients", panels: []panel{
		series("Requests by command", "reqps", query{`sum by (command, status) (rate(memcached_commands_total{` + ofShards + `}[$__rate_interval]))`, "{{command}} {{status}}"}),
		series("Hit ratio by shard", "percentunit", query{`memcached_shard:hit_ratio:rate5m{` + ofShards + `}`, "{{shard}}"}),
		series("Rejected connections and writes", "ops",
			query{selecting(ofShards, `sum by (shard) (rate(memcached_connections_rejected_total[$__rate_interval]) + rate(memcached_agent_connections_refused_total[$__rate_interval]) or rate(memcached_connections_rejected_total[$__rate_interval]))`), "connections {{shard}}"},
			query{`sum by (shard) (rate(memcached_item_no_memory_total{` + ofShards + `}[$__rate_interval]))`, "no memory {{shard}}"},
			query{`sum by (shard) (rate(memcached_item_too_large_total{` + ofShards + `}[$__rate_interval]))`, "too large {{shard}}"}),
		series("Round trip in the pod, 99th percentile", "s", query{`histogram_quantile(0.99, sum by (le, shard) (rate(memcached_agent_probe_duration_seconds_bucket{` + ofShards + `}[$__rate_interval])))`, "{{shard}}"}),
		series("Share of the usable connections in use", "percentunit", query{selecting(ofShards, connectionsInUse), "{{shard}}"}),
	}},
	{title: "What changes cost", panels: []panel{
		{"Phase of the agents", "state-timeline", "none", []query{{`memcached_agent_phase{` + ofShards + `} == 1`, "{{shard}} {{phase}}"}}},
		series("Items kept by the last start", "percentunit", query{`max by (shard) (memcached_agent_start_items{` + ofShards + `} / memcached_agent_start_items_before{` + ofShards + `})`, "{{shard}}"}),
		series("Length of the last outage", "s", query{`max by (shard) (memcached_agent_last_outage_seconds{` + ofShards + `})`, "{{shard}}"}),
	}},
	{title: "Memory", panels: []panel{
		series("Memory of the slabs", "bytes", query{`sum by (kind) (memcached_agent_slab_bytes{` + ofShards + `})`, "{{kind}}"}),
		series("Working set relative to the memory limit", "percentunit", query{`max by (shard) (memcached_agent_memory_working_set_bytes{` + ofShards + `} / memcached_agent_memory_limit_bytes{` + ofShards + `})`, "{{shard}}"}),
		series("Evictions", "ops", query{`sum by (shard) (rate(memcached_items_evicted_total{` + ofShards + `}[$__rate_interval]))`, "{{shard}}"}),
		series("Age of evicted items", "s", query{`min by (shard) (memcached_agent_eviction_age_seconds{` + ofShards + `})`, "{{shard}}"}),
		series("Idle items, by time without use", "bytes", query{`sum by (idle) (memcached_agent_idle_bytes{` + ofShards + `})`, "{{idle}}"}),
		series("Recommended memory of a shard", "bytes", query{`max by (reason) (memcached_agent_recommended_memory_bytes{` + ofShards + `} or memcached_agent_recommendation_absent{` + ofShards + `} * 0)`, "{{reason}}"}),
		series("Items", "short", query{`sum by (shard) (memcached_current_items{` + ofShards + `})`, "{{shard}}"}),
	}},
	{title: "Balance", panels: []panel{
		series("Gets per shard relative to the mean", "percentunit", query{`sum by (shard) (rate(memcached_commands_total{command="get",` + ofShards + `}[$__rate_interval])) / scalar(avg(sum by (shard) (rate(memcached_commands_total{command="get",` + ofShards + `}[$__rate_interval]))))`, "{{shard}}"}),
		series("Deviation from the median of the shards", "percentunit", query{`memcached_shard:deviation:rate5m{` + ofShards + `}`, "{{figure}} {{shard}}"}),
		series("Processor", "percentunit", query{`sum by (shard) (rate(memcached_process_user_cpu_seconds_total{` + ofShards + `}[$__rate_interval]) + rate(memcached_process_system_cpu_seconds_total{` + ofShards + `}[$__rate_interval]))`, "{{shard}}"}),
		series("Network", "Bps",
			query{`sum by (shard) (rate(memcached_read_bytes_total{` + ofShards + `}[$__rate_interval]))`, "received {{shard}}"},
			query{`sum by (shard) (rate(memcached_written_bytes_total{` + ofShards + `}[$__rate_interval]))`, "sent {{shard}}"}),
	}},
	{title: "Certificates (with spec.tls)", collapsed: true, panels: []panel{
		series("Days until the certificate expires", "d", query{`min by (shard) (memcached_agent_certificate_not_after_timestamp_seconds{` + ofShards + `} - time()) / 86400`, "{{shard}}"}),
		series("Shards that can't use the certificate of the Secret", "none", query{`max by (shard) (memcached_agent_certificate_rejected{` + ofShards + `})`, "{{shard}}"}),
	}},
	{title: "Slab classes (with spec.monitoring.details)", collapsed: true, panels: []panel{
		series("Wasted memory", "bytes", query{`sum by (slab) (memcached_slab_chunks_used{` + ofShards + `} * memcached_slab_chunk_size_bytes{` + ofShards + `} - memcached_slab_mem_requested_bytes{` + ofShards + `})`, "{{slab}}"}),
		series("Evictions by class", "ops", query{`sum by (slab) (rate(memcached_slab_items_evicted_total{` + ofShards + `}[$__rate_interval]))`, "{{slab}}"}),
	}},
}

var fleetRows = []row{
	{title: "Memcacheds", panels: []panel{
		table("Not ready", `memcached_operator_shards_ready < memcached_operator_shards_desired`),
		table("Degraded", `memcached_operator_condition{condition="Degraded"} == 1`),
		table("Updates and scaling", `time() - memcached_operator_update_step_timestamp_seconds or time() - memcached_operator_scaling_start_timestamp_seconds`),
		table("Versions", `count by (version) (memcached_operator_info)`),
		table("Lowest hit ratios", `bottomk(10, memcached:hit_ratio:rate5m)`),
		table("Most evictions", `topk(10, sum by (namespace, memcached) (rate(memcached_items_evicted_total{`+ofAnyShard+`}[$__rate_interval])))`),
		series("Memory that was used in a day", "bytes",
			query{`sum(memcached_limit_bytes{` + ofAnyShard + `})`, "all"},
			query{`sum(memcached_agent_used_memory_bytes{window="1d"})`, "used in a day"}),
		table("Oldest backups", `topk(10, time() - memcached_operator_schedule_last_success_timestamp_seconds)`),
	}},
	{title: "Changes", panels: []panel{
		series("Updates by outcome", "short", query{`sum by (outcome) (increase(memcached_operator_updates_total[$__rate_interval]))`, "{{outcome}}"}),
		series("Unavailable seconds of a shard, 99th percentile", "s", query{`histogram_quantile(0.99, sum by (le, method) (rate(memcached_operator_shard_unavailable_seconds_bucket[$__rate_interval])))`, "{{method}}"}),
		series("Items kept and lost", "short", query{`sum by (fate) (increase(memcached_operator_items_total[$__rate_interval]))`, "{{fate}}"}),
		series("Misses that updates caused", "short", query{`sum(increase(memcached_operator_update_extra_misses_total[$__rate_interval]))`, "misses"}),
		series("Losses of shards", "short", query{`sum(increase(memcached_operator_shard_losses_total[$__rate_interval]))`, "losses"}),
	}},
	{title: "Operator", panels: []panel{
		stat("Leader", "none", `sum(memcached_operator_leader)`),
		series("Reconciles", "ops", query{`sum by (controller) (rate(controller_runtime_reconcile_total{job="` + operatorJob + `"}[$__rate_interval]))`, "{{controller}}"}),
		series("Errors", "ops", query{`sum by (controller) (rate(controller_runtime_reconcile_errors_total{job="` + operatorJob + `"}[$__rate_interval]))`, "{{controller}}"}),
		series("Reconcile time, 99th percentile", "s", query{`histogram_quantile(0.99, sum by (le, controller) (rate(controller_runtime_reconcile_time_seconds_bucket{job="` + operatorJob + `"}[$__rate_interval])))`, "{{controller}}"}),
		series("Queue", "short", query{`sum by (name) (workqueue_depth{job="` + operatorJob + `"})`, "{{name}}"}),
		series("Memory", "bytes", query{`process_resident_memory_bytes{job="` + operatorJob + `"}`, "{{pod}}"}),
	}},
}

// Dashboards returns the dashboards by their name. There is one for all Memcacheds, with variables,
// since thousands of ConfigMaps would contain the same.
func Dashboards() map[string][]byte {
	return map[string][]byte{
		"memcached": dashboard("memcached-operator-memcached", "Memcached", memcachedRows,
			variable("namespace", `label_values(memcached_up{`+ofAnyShard+`}, namespace)`, false),
			variable("memcached", `label_values(memcached_up{namespace=~"$namespace"}, memcached)`, false),
			variable("shard", `label_values(memcached_up{namespace=~"$namespace",memcached=~"$memcached"}, shard)`, true)),
		"fleet": dashboard("memcached-operator-fleet", "Memcached fleet", fleetRows),
	}
}

func variable(name, query string, all bool) map[string]any {
	return map[string]any{"name": name, "type": "query", "datasource": datasource(), "query": map[string]any{"query": query, "refId": name},
		"refresh": 2, "sort": 3, "includeAll": all, "multi": all}
}

// datasource is a variable: the sidecar that imports dashboards fills in none.
func datasource() map[string]any { return map[string]any{"type": "prometheus", "uid": "$datasource"} }

// The width of a dashboard is 24.
const (
	panelWidth  = 8
	panelHeight = 8
	rowWidth    = 24
)

func dashboard(uid, title string, rows []row, variables ...map[string]any) []byte {
	var panels []any
	id, y := 0, 0
	for _, r := range rows {
		id++
		header := map[string]any{"id": id, "type": "row", "title": r.title, "collapsed": r.collapsed, "gridPos": position(0, y, rowWidth, 1), "panels": []any{}}
		y++
		var inRow []any
		x := 0
		for _, p := range r.panels {
			id++
			if x+panelWidth > rowWidth {
				x, y = 0, y+panelHeight
			}
			inRow = append(inRow, p.model(id, position(x, y, panelWidth, panelHeight)))
			x += panelWidth
		}
		y += panelHeight
		if r.collapsed {
			header["panels"] = inRow
			inRow = nil
		}
		panels = append(append(panels, header), inRow...)
	}
	source := map[string]any{"name": "datasource", "type": "datasource", "query": "prometheus"}
	content, err := json.MarshalIndent(map[string]any{
		"uid": uid, "title": title, "tags": []string{"memcached"}, "editable": false, "schemaVersion": 39, "version": 1, "refresh": "30s", "timezone": "",
		"time":       map[string]any{"from": "now-3h", "to": "now"},
		"templating": map[string]any{"list": append([]map[string]any{source}, variables...)},
		"panels":     panels,
	}, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("writing the dashboard %s: %v", uid, err)) // of constants alone
	}
	return append(content, '\n')
}

func position(x, y, w, h int) map[string]any { return map[string]any{"x": x, "y": y, "w": w, "h": h} }

func (p panel) model(id int, at map[string]any) map[string]any {
	var targets []any
	for i, q := range p.queries {
		target := map[string]any{"refId": string(rune('A' + i)), "datasource": datasource(), "expr": q.expr, "legendFormat": q.legend}
		if p.kind == "table" {
			target["format"], target["instant"] = "table", true
		}
		targets = append(targets, target)
	}
	return map[string]any{"id": id, "type": p.kind, "title": p.title, "datasource": datasource(), "gridPos": at, "targets": targets,
		"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit}, "overrides": []any{}}}
}
