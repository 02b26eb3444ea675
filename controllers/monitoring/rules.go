package monitoring

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Severities of alerts.
const (
	critical = "critical"
	warning  = "warning"
	info     = "info"
)

// operatorJob is the job of the operator's own series.
const operatorJob = "memcached-operator"

// runbookURL is where the runbook of an alert is.
const runbookURL = "https://github.com/memcached-operator/memcached-operator/blob/main/docs/runbooks/"

// rule is an alert, or a recorded series if it has no severity.
type rule struct {
	name, expr string
	// wait is for how long the expression has to be true.
	wait, severity       string
	summary, description string
	// figure is a label of a recorded series.
	figure string
}

// deviation records a figure of each shard relative to the median of its Memcached. Without a median above 0 there is no such share.
func deviation(figure, expr string) rule {
	return rule{name: "memcached_shard:deviation:rate5m", figure: figure, expr: expr + `
/ on (namespace, memcached) group_left () (quantile by (namespace, memcached) (0.5, ` + expr + `) > 0) - 1`}
}

// connectionsInUse is the share of its usable connections that clients of a shard have.
const connectionsInUse = `max by (namespace, memcached, shard) (
  (memcached_current_connections + memcached_agent_silent_connections or memcached_current_connections)
  / memcached_agent_usable_connections)`

// Alerts about shards use the metrics of the agents alone, and are in the namespace of the
// Memcached: a Prometheus that enforces the namespace label sees no others there.
var shardRules = []rule{
	// Without lookups there is no ratio. A value that is not a number would remain in each average over that time.
	{name: "memcached_shard:hit_ratio:rate5m", expr: `
sum by (namespace, memcached, shard) (rate(memcached_commands_total{command=~"get|touch",status="hit"}[5m]))
/ (sum by (namespace, memcached, shard) (rate(memcached_commands_total{command=~"get|touch"}[5m])) > 0)`},
	{name: "memcached:hit_ratio:rate5m", expr: `
sum by (namespace, memcached) (rate(memcached_commands_total{command=~"get|touch",status="hit"}[5m]))
/ (sum by (namespace, memcached) (rate(memcached_commands_total{command=~"get|touch"}[5m])) > 0)`},
	deviation("hit ratio", `memcached_shard:hit_ratio:rate5m`),
	deviation("requests", `sum by (namespace, memcached, shard) (rate(memcached_commands_total[5m]))`),
	deviation("evictions", `sum by (namespace, memcached, shard) (rate(memcached_items_evicted_total[5m]))`),
	// Clients don't use a new shard yet that gets its items from the other ones.
	{name: "MemcachedShardNotAnswering", wait: "5m", severity: critical, expr: `
max by (namespace, memcached, shard) (memcached_up) == 0
unless on (namespace, memcached, shard) (memcached_agent_phase{phase="Receiving"} == 1
  and on (namespace, memcached, shard) memcached_agent_scaling_items{fate="copied"})`,
		summary:     "A shard's memcached does not answer.",
		description: "The agent of shard {{ $labels.memcached }}-{{ $labels.shard }} in namespace {{ $labels.namespace }} responds, and its memcached does not. Its keys have no server."},
	{name: "MemcachedConnectionsRefused", wait: "5m", severity: critical, expr: `
sum by (namespace, memcached, shard) (rate(memcached_connections_rejected_total[5m]))
/ (sum by (namespace, memcached, shard) (rate(memcached_connections_rejected_total[5m]))
   + sum by (namespace, memcached, shard) (rate(memcached_connections_total[5m]))) > 0.05
or sum by (namespace, memcached, shard) (rate(memcached_agent_connections_refused_total[5m]))
/ (sum by (namespace, memcached, shard) (rate(memcached_agent_connections_refused_total[5m]))
   + sum by (namespace, memcached, shard) (rate(memcached_connections_total[5m]))) > 0.05`,
		summary:     "A shard rejects connections.",
		description: "Shard {{ $labels.memcached }}-{{ $labels.shard }} in namespace {{ $labels.namespace }} rejects {{ $value | humanizePercentage }} of the new connections, since it has reached its limit."},
	{name: "MemcachedConnectionsNearLimit", wait: "15m", severity: warning, expr: connectionsInUse + " > 0.9",
		summary:     "A shard is near its limit of connections.",
		description: "Clients use {{ $value | humanizePercentage }} of the connections that shard {{ $labels.memcached }}-{{ $labels.shard }} in namespace {{ $labels.namespace }} can accept."},
	{name: "MemcachedWritesRefused", wait: "10m", severity: warning, expr: `
sum by (namespace, memcached, shard) (rate(memcached_item_no_memory_total[5m]))
/ (sum by (namespace, memcached, shard) (rate(memcached_item_no_memory_total[5m]))
   + sum by (namespace, memcached, shard) (rate(memcached_commands_total{command=~"set|cas"}[5m]))) > 0.01`,
		summary:     "A shard rejects items because it has no memory for them.",
		description: "Shard {{ $labels.memcached }}-{{ $labels.shard }} in namespace {{ $labels.namespace }} has no memory for {{ $value | humanizePercentage }} of the items that clients store."},
	{name: "MemcachedLoginsRefused", wait: "10m", severity: warning, expr: `
sum by (namespace, memcached, shard) (rate(memcached_agent_login_errors_total[5m])) > 1`,
		summary:     "A shard rejects logins.",
		description: "Shard {{ $labels.memcached }}-{{ $labels.shard }} in namespace {{ $labels.namespace }} rejects {{ $value | humanize }} logins a second. A client has a wrong password, or guesses."},
	{name: "MemcachedHitRatioDropped", wait: "15m", severity: warning, expr: `
memcached:hit_ratio:rate5m < 0.7 * avg_over_time(memcached:hit_ratio:rate5m[1d] offset 1h)
and sum by (namespace, memcached) (rate(memcached_commands_total{command=~"get|touch"}[5m])) > 10`,
		summary:     "Clients find fewer of their keys than over the last day.",
		description: "The hit ratio of Memcached {{ $labels.memcached }} in namespace {{ $labels.namespace }} is {{ $value | humanizePercentage }}, less than 70% of its average over the last day."},
	// The rates of three windows deviate: those of 5 minutes at the beginning, the middle and the end of the wait. Of two shards, none
	// is further from the median than the other one.
	{name: "MemcachedShardDeviates", wait: "10m", severity: info, expr: `
abs(memcached_shard:deviation:rate5m) > 0.2
and abs(memcached_shard:deviation:rate5m)
  > on (namespace, memcached, figure) group_left () (5 * quantile by (namespace, memcached, figure) (0.5, abs(memcached_shard:deviation:rate5m)))
and on (namespace, memcached) sum by (namespace, memcached) (rate(memcached_commands_total[5m])) > 10`,
		summary:     "A shard differs from the other shards of its Memcached.",
		description: "Shard {{ $labels.memcached }}-{{ $labels.shard }} in namespace {{ $labels.namespace }} differs by {{ $value | humanizePercentage }} from the median of the shards in its {{ $labels.figure }}."},
	{name: "MemcachedCertificateExpiring", wait: "15m", severity: warning, expr: `
min by (namespace, memcached) (
  (memcached_agent_certificate_not_after_timestamp_seconds - time())
  / (memcached_agent_certificate_not_after_timestamp_seconds - memcached_agent_certificate_not_before_timestamp_seconds)) < 1 / 6`,
		summary:     "The certificate of a Memcached expires soon, or has expired.",
		description: "{{ $value | humanizePercentage }} of the lifetime of the certificate that Memcached {{ $labels.memcached }} in namespace {{ $labels.namespace }} serves is left. Clients reject it once it has expired."},
	{name: "MemcachedMemoryNearLimit", wait: "10m", severity: warning, expr: `
max by (namespace, memcached, shard) (memcached_agent_memory_working_set_bytes / memcached_agent_memory_limit_bytes) > 0.97`,
		summary:     "The kernel may kill a shard, which loses its items.",
		description: "The container of shard {{ $labels.memcached }}-{{ $labels.shard }} in namespace {{ $labels.namespace }} uses {{ $value | humanizePercentage }} of its memory limit."},
}

// What the last leader exported of the shards of a Memcached.
const (
	shardsReady   = "last_over_time(memcached_operator_shards_ready[3m])"
	shardsDesired = "last_over_time(memcached_operator_shards_desired[3m])"
)

// twoRuns are the seconds in which a schedule has had two runs, and an hour for the second one.
const twoRuns = `2 * max by (namespace, memcached, schedule) (max_over_time(memcached_operator_schedule_period_seconds[7d])) + 3600`

// Alerts about what the operator knows are in its own namespace. They have no label of its pod, and last while another one becomes the leader,
// which takes less than three minutes.
var operatorRules = []rule{
	{name: "MemcachedDown", wait: "5m", severity: critical, expr: `
max by (namespace, memcached) (` + shardsReady + ` <= 0.5 * ` + shardsDesired + `
  and ` + shardsDesired + ` > 0)`,
		summary:     "Half or more of the keys have no server.",
		description: "Only {{ $value }} shards of Memcached {{ $labels.memcached }} in namespace {{ $labels.namespace }} are ready."},
	{name: "MemcachedShardsNotReady", wait: "10m", severity: warning, expr: `
max by (namespace, memcached) (` + shardsReady + ` < ` + shardsDesired + `
  and ` + shardsReady + ` > 0.5 * ` + shardsDesired + `)`,
		summary:     "Some keys have no server.",
		description: "Only {{ $value }} shards of Memcached {{ $labels.memcached }} in namespace {{ $labels.namespace }} are ready, fewer than its size."},
	{name: "MemcachedDegraded", wait: "10m", severity: warning, expr: `
max by (namespace, memcached, condition, reason) (last_over_time(memcached_operator_condition{condition="Degraded"}[3m])) == 1
unless on (namespace, memcached) memcached_operator_condition{condition="Degraded"} == 0`,
		summary:     "A Memcached requires manual intervention.",
		description: "Memcached {{ $labels.memcached }} in namespace {{ $labels.namespace }} is Degraded: {{ $labels.reason }}."},
	{name: "MemcachedShardLostItems", severity: warning, expr: `
time() - max by (namespace, memcached) (max_over_time(memcached_operator_shard_last_loss_timestamp_seconds[15m])) < 900`,
		summary:     "A shard started without its items.",
		description: "A shard of Memcached {{ $labels.memcached }} in namespace {{ $labels.namespace }} started empty, and no update had announced it. Expect more load on what the cache protects."},
	// The user decides for how long these gates block. After the time for the hit ratio, the Memcached is Degraded.
	{name: "MemcachedUpdateStuck", wait: "5m", severity: warning, expr: `
max by (namespace, memcached, step, gate) (
  time() - last_over_time(memcached_operator_update_step_timestamp_seconds{gate!~"Paused|OutsideMaintenanceWindow|MinPeriodNotElapsed|HitRatioNotRecovered"}[3m])) > 3600`,
		summary:     "The update of a Memcached does not continue.",
		description: "The update of Memcached {{ $labels.memcached }} in namespace {{ $labels.namespace }} has not continued for {{ $value | humanizeDuration }}. Its method is {{ $labels.step }}, its gate {{ $labels.gate }}."},
	{name: "MemcachedBackupFailed", wait: "5m", severity: warning, expr: `
max by (namespace, memcached, result) (last_over_time(memcached_operator_backup_last_result{result="Failed"}[3m])) == 1
and on (namespace, memcached) ` + shardsDesired + ` > 0`,
		summary:     "The last backup failed.",
		description: "The last MemcachedBackup of Memcached {{ $labels.memcached }} in namespace {{ $labels.namespace }} is Failed."},
	// A schedule that is resumed, or whose Memcached grows from size 0, has the time of two runs from then on, as far as seven days show it.
	{name: "MemcachedBackupTooOld", wait: "10m", severity: warning, expr: `
time() - max by (namespace, memcached, schedule) (last_over_time(memcached_operator_schedule_last_success_timestamp_seconds[3m])) > ` + twoRuns + `
and on (namespace, memcached, schedule) last_over_time(memcached_operator_schedule_period_seconds[3m])
unless on (namespace, memcached) ` + shardsDesired + ` == 0
unless on (namespace, memcached, schedule) time() - max by (namespace, memcached, schedule) (max_over_time(timestamp(
  memcached_operator_schedule_last_success_timestamp_seconds unless on (namespace, memcached, schedule) (
    memcached_operator_schedule_next_timestamp_seconds unless on (namespace, memcached) memcached_operator_shards_desired == 0)
)[7d:1h])) < ` + twoRuns,
		summary:     "Two runs of a schedule created no complete backup.",
		description: "The last complete backup of schedule {{ $labels.schedule }} of Memcached {{ $labels.memcached }} in namespace {{ $labels.namespace }} is {{ $value | humanizeDuration }} old."},
	{name: "MemcachedOperatorFailing", wait: "30m", severity: warning, expr: `
sum by (namespace, controller) (rate(controller_runtime_reconcile_errors_total{job="` + operatorJob + `"}[15m]))
/ sum by (namespace, controller) (rate(controller_runtime_reconcile_total{job="` + operatorJob + `"}[15m])) > 0.5`,
		summary:     "Most reconciles of the operator fail.",
		description: "{{ $value | humanizePercentage }} of the reconciles of controller {{ $labels.controller }} of the operator in namespace {{ $labels.namespace }} fail."},
}

// ShardRules returns the spec of the PrometheusRule for the shards in a namespace; for all shards, if the namespace is empty.
func ShardRules(namespace string) map[string]any {
	of := ofAnyShard
	if namespace != "" {
		of = fmt.Sprintf("namespace=%q,", namespace) + of
	}
	rules := slices.Clone(shardRules)
	for i := range rules {
		rules[i].expr = selecting(of, rules[i].expr)
	}
	return groups("memcached-shards", rules)
}

// ofAnyShard selects the series of shards: memcached_exporter has the same names for those of others.
const ofAnyShard = `memcached!=""`

// selecting adds matchers of labels to each of our series in an expression.
func selecting(labels, expr string) string {
	return seriesPattern.ReplaceAllStringFunc(expr, func(series string) string {
		if name, more := strings.CutSuffix(series, "{"); more {
			return name + "{" + labels + ","
		}
		return series + "{" + labels + "}"
	})
}

var seriesPattern = regexp.MustCompile(`\bmemcached[_:][a-z0-9_:]+\{?`)

// OperatorRules returns the spec of the PrometheusRule for what the operator in a namespace exports; any operator, if the namespace is
// empty.
func OperatorRules(namespace string) map[string]any {
	return groups("memcached-operator", append(slices.Clone(operatorRules), operatorDown(namespace)))
}

// operatorDown is the alert that another operator's series must not prevent. An operator that crashes again and again leads for a
// minute in six. It waits for longer than a Prometheus that has just started takes to know that one leads.
func operatorDown(namespace string) rule {
	expr, where := `
absent(memcached_operator_leader == 1)
or (count_over_time((max(memcached_operator_leader) == 1)[15m:1m]) or vector(0)) < 8`, ""
	if namespace != "" {
		expr, where = selecting(fmt.Sprintf("namespace=%q", namespace), expr), " in namespace "+namespace
	}
	return rule{name: "MemcachedOperatorDown", wait: "15m", severity: warning, expr: expr,
		summary:     "No operator replica is active, or each one crashes.",
		description: "For most of the last 15 minutes, no Memcached operator" + where + " held the lease. Shards keep serving; nothing is repaired, updated or backed up, and the other alerts of the operator can't fire."}
}

func groups(name string, rules []rule) map[string]any {
	var all []any
	for _, r := range rules {
		expr := strings.TrimSpace(r.expr)
		if r.severity == "" {
			record := map[string]any{"record": r.name, "expr": expr}
			if r.figure != "" {
				record["labels"] = map[string]any{"figure": r.figure}
			}
			all = append(all, record)
			continue
		}
		alert := map[string]any{
			"alert": r.name, "expr": expr, "labels": map[string]any{"severity": r.severity},
			"annotations": map[string]any{"summary": r.summary, "description": r.description, "runbook_url": runbookURL + r.name + ".md"},
		}
		if r.wait != "" {
			alert["for"] = r.wait
		}
		all = append(all, alert)
	}
	return map[string]any{"groups": []any{map[string]any{"name": name, "rules": all}}}
}
