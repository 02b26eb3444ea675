package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// The metrics of each Memcached, at most eleven series: an operator may have thousands of them.
var (
	info          = memcachedDesc("info", "1 for the version of memcached that the shards run.", "version")
	condition     = memcachedDesc("condition", "1 if the condition of the Memcached is True, 0 otherwise.", "condition", "reason")
	shardsDesired = memcachedDesc("shards_desired", "Number of shards that should be ready for clients: while items move to other shards, and while it is paused or its spec rejected, those that clients know, not spec.size.")
	shardsReady   = memcachedDesc("shards_ready", "Number of shards of the Memcached that are ready.")
	shardsCurrent = memcachedDesc("shards_current", "Number of shards of the Memcached that match its spec.")
	shardLosses   = memcachedDesc("shard_losses_total",
		"Number of times that a shard started without its items and no update had announced it, since this operator started.")
	// The counter first appears at 1 if the operator finds a loss when it starts, which no increase() sees.
	lastLoss = memcachedDesc("shard_last_loss_timestamp_seconds",
		"Time at which this operator last saw that a shard started without its items and no update had announced it, in seconds since 1970. It is absent without such a start.")
	updateStep = memcachedDesc("update_step_timestamp_seconds",
		"Time at which the update of the Memcached reached its method and its gate, in seconds since 1970. It is absent without an update.", "step", "gate")
	scalingStart = memcachedDesc("scaling_start_timestamp_seconds",
		"Time at which the number of shards of the Memcached began to change, in seconds since 1970, by its step now. It is absent without such a change, or if no items move.", "step")
)

// exportedConditions are those of which each has a series. Ready follows from them.
var exportedConditions = map[string]bool{v1beta1.ConditionAvailable: true, v1beta1.ConditionProgressing: true, v1beta1.ConditionDegraded: true}

func memcachedDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("memcached_operator_"+name, help, append([]string{"namespace", "memcached"}, labels...), nil)
}

// Memcacheds is a collector that exports the state of each Memcached.
type Memcacheds struct {
	Source
	// Changes counts the losses of shards.
	Changes *Changes
}

// Describe implements prometheus.Collector.
func (c *Memcacheds) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{info, condition, shardsDesired, shardsReady, shardsCurrent, shardLosses, lastLoss, updateStep, scalingStart} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Memcacheds) Collect(to chan<- prometheus.Metric) {
	var all v1beta1.MemcachedList
	if !c.List(&all) {
		return
	}
	for i := range all.Items {
		losses, last := c.Changes.losses(&all.Items[i])
		collect(to, &all.Items[i], losses, last)
	}
}

func collect(to chan<- prometheus.Metric, m *v1beta1.Memcached, losses int, last time.Time) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, append([]string{m.Namespace, m.Name}, labels...)...)
	}
	send(info, prometheus.GaugeValue, 1, m.Status.Version)
	desired := resources.Listed(m)
	if m.Spec.Paused && len(m.Status.Shards) == 0 { // none is created
		desired = 0
	}
	send(shardsDesired, prometheus.GaugeValue, float64(desired))
	send(shardsReady, prometheus.GaugeValue, float64(m.Status.ReadyShards))
	send(shardsCurrent, prometheus.GaugeValue, float64(m.Status.UpdatedShards))
	send(shardLosses, prometheus.CounterValue, float64(losses))
	if losses > 0 {
		send(lastLoss, prometheus.GaugeValue, float64(last.Unix()))
	}
	for i := range m.Status.Conditions {
		if c := &m.Status.Conditions[i]; exportedConditions[c.Type] {
			send(condition, prometheus.GaugeValue, number(c.Status == metav1.ConditionTrue), c.Type, c.Reason)
		}
	}
	if u := m.Status.Update; u != nil {
		send(updateStep, prometheus.GaugeValue, float64(u.LastTransitionTime.Unix()), string(u.Method), string(u.Gate))
	}
	if s := m.Status.Scaling; s != nil {
		send(scalingStart, prometheus.GaugeValue, float64(s.StartTime.Unix()), string(s.Step))
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
