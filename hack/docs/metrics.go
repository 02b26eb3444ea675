package main

import (
	"fmt"
	"strings"

	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
)

const metricsIntroduction = `# Metrics of the shards

` + "`make docs`" + ` generates this page from the agent's table of metrics.

The agent in each pod of a shard serves metrics in the text format of Prometheus at port 9150,
which is named ` + "`metrics`" + `, and path ` + "`/metrics`" + `.

The metrics without the prefix ` + "`memcached_agent_`" + ` are those of memcached_exporter 0.16, with the same names,
labels and meaning, so that dashboards and alerts for it work unchanged. Two of them are gauges here and counters
there: ` + "`memcached_slab_mem_requested_bytes` and `memcached_slab_items_evicted_time_seconds`" + `.

An answer contains the metrics of each slab class only if the request asks for them: ` + "`/metrics?slabs`" + `. It is at
most one second old. A scrape takes 1.5 to 2 ms of the agent's CPU time, and less than 0.3 ms of memcached's. The agent
accepts 50 connections per second: a flood of requests takes 3% of a CPU, and nothing of memcached's time (` + "`make bench-scrapes`" + `). While
memcached doesn't answer, ` + "`memcached_up`" + ` is 0, and the agent still reports its own metrics.

A series is absent if memcached doesn't report the value, or if the agent can't know it. Braces contain the labels.
`

// metricsPage returns the reference of the metrics of the shards.
func metricsPage() string {
	var text strings.Builder
	text.WriteString(metricsIntroduction)
	for _, group := range []struct {
		title, words string
		has          func(metrics.Family) bool
	}{
		{"Every answer", "Every answer contains these metrics.", func(f metrics.Family) bool { return f.Exporter && !f.Classes }},
		{"Slab classes", "An answer contains these metrics only with `?slabs`. The label `slab` is the number of the slab class.", func(f metrics.Family) bool { return f.Classes }},
		{"Agent", "Counters with the source *pod* continue over restarts of the container. They begin at 0 in each new pod.", func(f metrics.Family) bool { return !f.Exporter }},
	} {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n\n", group.title, group.words)
		for _, f := range metrics.Families() {
			if !group.has(f) {
				continue
			}
			labels := ""
			if len(f.Labels) > 0 {
				labels = "{" + strings.Join(f.Labels, ",") + "}"
			}
			source := strings.Join(f.Sources(), "; ")
			switch {
			case source != "":
			case f.Type == metrics.Counter && !f.Exporter:
				source = "pod"
			default:
				source = "agent"
			}
			fmt.Fprintf(&text, "- `%s%s` (%s): %s Source: %s\n", f.Name, labels, f.Type, f.Help, source)
		}
	}
	return text.String()
}
