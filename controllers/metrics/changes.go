package metrics

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// Outcomes of an update.
const (
	updateFinished   = "Finished"
	updateRolledBack = "RolledBack"
	updateSuperseded = "Superseded"
)

// Outcomes of a change of the number of shards.
const (
	scalingWarm = "Warm"
	scalingCold = "Cold"
)

// unplanned is the method of a shard that became unavailable without an update.
const unplanned = "None"

// Changes counts what the statuses of Memcacheds report one after another, without a series for
// each Memcached. It is the handler of an informer, so that what it counts is what users see.
type Changes struct {
	clock   clock.PassiveClock
	elected <-chan struct{}

	updates        *prometheus.CounterVec
	updateDuration prometheus.Histogram
	notReady       *prometheus.HistogramVec
	items          *prometheus.CounterVec
	unavailable    prometheus.Counter
	misses         prometheus.Counter
	recovery       prometheus.Histogram
	scalings       *prometheus.CounterVec
	scalingItems   *prometheus.CounterVec
	stale          prometheus.Histogram

	lock       sync.Mutex
	memcacheds map[types.UID]*history
}

// history is what Changes knows of one Memcached besides its status.
type history struct {
	losses   int
	lastLoss time.Time
	// updateSince is when the update of this revision began, if this operator saw it.
	revision    string
	updateSince time.Time
	// methods are those of the updates of shards that haven't reported their start yet. The status
	// may already name the next shard.
	methods map[string]string
	// unavailable is since when a shard isn't ready.
	unavailable map[string]time.Time
}

// NewChanges returns a handler that has seen nothing. All of its series exist from the start, since
// a counter that appears with the value 1 has no increase. Only the leader, which closes elected,
// exports them.
func NewChanges(clock clock.PassiveClock, elected <-chan struct{}) *Changes {
	c := &Changes{
		clock:      clock,
		elected:    elected,
		memcacheds: map[types.UID]*history{},
		updates: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "memcached_operator_updates_total",
			Help: "Number of updates of Memcacheds by their outcome. A superseded update was replaced by another change, or reverted, before it finished."}, []string{"outcome"}),
		updateDuration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "memcached_operator_update_duration_seconds",
			Help:    "Duration of the updates of Memcacheds that finished, with the time in which a gate blocked them.",
			Buckets: []float64{10, 30, 60, 300, 900, 3600, 14400, 86400}}),
		notReady: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "memcached_operator_shard_unavailable_seconds",
			Help: "Seconds in which a shard that had been ready wasn't, by the method of its update, or None without an update. After a handover, the seconds in which " +
				"no pod of it responded. Restarts that are shorter than the readiness probe notices aren't counted.",
			Buckets: []float64{.1, .5, 1, 2, 5, 10, 30, 60, 300, 900}}, []string{"method"}),
		items: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "memcached_operator_items_total",
			Help: "Number of items that shards kept or lost when they started again, as far as it is known how many they contained."}, []string{"fate"}),
		unavailable: prometheus.NewCounter(prometheus.CounterOpts{Name: "memcached_operator_update_unavailable_seconds_total",
			Help: "Seconds in which no memcached of a shard responded because of an update, as its agent measured them."}),
		misses: prometheus.NewCounter(prometheus.CounterOpts{Name: "memcached_operator_update_extra_misses_total",
			Help: "Number of misses that updates caused, compared with the hit ratio of each shard in the minute before. status.lastUpdate has those of one update."}),
		recovery: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "memcached_operator_update_hit_ratio_recovery_seconds",
			Help:    "Seconds from the start of an update until the hit ratio of each shard was back. Updates after which it wasn't within 30 minutes aren't counted.",
			Buckets: []float64{30, 60, 120, 300, 600, 1200, 1800, 3600, 14400}}),
		scalings: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "memcached_operator_scalings_total",
			Help: "Number of changes of the number of shards in which items moved, by their outcome. It is Cold if they should have moved, and didn't."}, []string{"outcome"}),
		scalingItems: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "memcached_operator_scaling_items_total",
			Help: "Number of items that were copied, deleted or purged when the number of shards changed. status.lastScaling has those of one change."}, []string{"fate"}),
		stale: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "memcached_operator_scaling_stale_seconds",
			Help:    "Longest time for which a client could read a value that a client with another list of shards had changed, for each change of their number.",
			Buckets: []float64{.1, .25, .5, 1, 2, 5, 10, 30, 60}}),
	}
	for _, outcome := range []string{scalingWarm, scalingCold} {
		c.scalings.WithLabelValues(outcome)
	}
	for _, fate := range []string{"copied", "deleted", "purged"} {
		c.scalingItems.WithLabelValues(fate)
	}
	for _, outcome := range []string{updateFinished, updateRolledBack, updateSuperseded} {
		c.updates.WithLabelValues(outcome)
	}
	for _, method := range []v1beta1.UpdateMethod{v1beta1.UpdateLive, v1beta1.UpdateRestart, v1beta1.UpdateRecreate, v1beta1.UpdateReplace, unplanned} {
		c.notReady.WithLabelValues(string(method))
	}
	for _, fate := range []string{"kept", "lost"} {
		c.items.WithLabelValues(fate)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Changes) Describe(descs chan<- *prometheus.Desc) {
	for _, of := range c.collectors() {
		of.Describe(descs)
	}
}

// Collect implements prometheus.Collector.
func (c *Changes) Collect(to chan<- prometheus.Metric) {
	if !isClosed(c.elected) {
		return
	}
	for _, of := range c.collectors() {
		of.Collect(to)
	}
}

func (c *Changes) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.updates, c.updateDuration, c.notReady, c.items, c.unavailable, c.misses, c.recovery, c.scalings, c.scalingItems, c.stale}
}

// OnAdd implements cache.ResourceEventHandler.
func (c *Changes) OnAdd(any, bool) {}

// OnDelete implements cache.ResourceEventHandler.
func (c *Changes) OnDelete(o any) {
	if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	if m, ok := o.(*v1beta1.Memcached); ok {
		c.lock.Lock()
		defer c.lock.Unlock()
		delete(c.memcacheds, m.UID)
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (c *Changes) OnUpdate(was, is any) {
	before, ok := was.(*v1beta1.Memcached)
	after, alsoOK := is.(*v1beta1.Memcached)
	if !ok || !alsoOK || before.UID != after.UID || before.ResourceVersion == after.ResourceVersion {
		return
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	h := c.memcacheds[after.UID]
	if h == nil {
		h = &history{methods: map[string]string{}, unavailable: map[string]time.Time{}}
		c.memcacheds[after.UID] = h
	}
	for _, u := range []*v1beta1.UpdateStatus{before.Status.Update, after.Status.Update} {
		if u != nil && u.Gate == "" && u.Shard != "" {
			h.methods[u.Shard] = string(u.Method)
		}
	}
	c.update(h, before.Status.Update, after)
	c.cost(before.Status.LastUpdate, after.Status.LastUpdate)
	c.scaling(before.Status.LastScaling, after.Status.LastScaling)
	c.shards(h, &before.Status, after)
	if s := after.Status; s.Update == nil && s.ReadyShards == s.Size && s.UpdatedShards == s.Size {
		clear(h.methods)
	}
	if h.unused() {
		delete(c.memcacheds, after.UID)
	}
}

// unused reports whether a history says no more than none does.
func (h *history) unused() bool {
	return h.losses == 0 && h.revision == "" && len(h.methods) == 0 && len(h.unavailable) == 0
}

// losses returns how often a shard of a Memcached was lost, and when that was last seen.
func (c *Changes) losses(m *v1beta1.Memcached) (int, time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if h := c.memcacheds[m.UID]; h != nil {
		return h.losses, h.lastLoss
	}
	return 0, time.Time{}
}

// update counts the end of an update, and notes the beginning of one.
func (c *Changes) update(h *history, was *v1beta1.UpdateStatus, m *v1beta1.Memcached) {
	is := m.Status.Update
	if was != nil && (is == nil || is.Revision != was.Revision) {
		outcome := updateSuperseded
		if was.IsFinished(&m.Status) {
			outcome = updateFinished
			if h.revision == was.Revision {
				observe(c.updateDuration, c.clock.Since(h.updateSince))
			}
		}
		// A rollback counted when it began.
		if !was.IsRolledBack() {
			c.updates.WithLabelValues(outcome).Inc()
		}
	}
	switch {
	case is == nil:
		h.revision = ""
	case was == nil || was.Revision != is.Revision:
		h.revision, h.updateSince = is.Revision, c.clock.Now()
	}
	if is != nil && is.IsRolledBack() && (was == nil || was.Revision != is.Revision || !was.IsRolledBack()) {
		c.updates.WithLabelValues(updateRolledBack).Inc()
	}
}

// cost counts what was added to the cost of an update.
func (c *Changes) cost(was, is *v1beta1.UpdateCost) {
	if is == nil {
		return
	}
	if was == nil || was.Revision != is.Revision || !was.StartTime.Equal(&is.StartTime) {
		was = &v1beta1.UpdateCost{}
	}
	c.unavailable.Add(float64(max(max(is.UnavailableMilliseconds, 0)-max(was.UnavailableMilliseconds, 0), 0)) / 1000)
	if was.ExtraMisses == nil && is.ExtraMisses != nil {
		c.misses.Add(float64(max(*is.ExtraMisses, 0)))
		if is.HitRatioRecoveryTime != nil {
			observe(c.recovery, is.HitRatioRecoveryTime.Sub(is.StartTime.Time))
		}
	}
}

// scaling counts a change of the number of shards that is over.
func (c *Changes) scaling(was, is *v1beta1.ScalingStatus) {
	if is == nil || was != nil && was.ID == is.ID {
		return
	}
	outcome := scalingWarm
	if is.Problem != "" {
		outcome = scalingCold
	}
	c.scalings.WithLabelValues(outcome).Inc()
	c.scalingItems.WithLabelValues("copied").Add(float64(max(is.Moved, 0)))
	c.scalingItems.WithLabelValues("deleted").Add(float64(max(is.Deleted, 0)))
	c.scalingItems.WithLabelValues("purged").Add(float64(max(is.Purged, 0)))
	if is.PublishTime != nil {
		observe(c.stale, time.Duration(is.StaleMilliseconds)*time.Millisecond)
	}
}

// shards counts the starts and the outages of shards.
func (c *Changes) shards(h *history, was *v1beta1.MemcachedStatus, m *v1beta1.Memcached) {
	before := make(map[string]*v1beta1.ShardStatus, len(was.Shards))
	for i := range was.Shards {
		before[was.Shards[i].Name] = &was.Shards[i]
	}
	for i := range m.Status.Shards {
		s := &m.Status.Shards[i]
		last := before[s.Name]
		delete(before, s.Name)
		if last == nil {
			continue
		}
		method := cmp.Or(h.methods[s.Name], unplanned)
		if last.Ready && !s.Ready {
			h.unavailable[s.Name] = c.clock.Now()
		}
		if since, ok := h.unavailable[s.Name]; ok && s.Ready {
			delete(h.unavailable, s.Name)
			if s.StartResult != v1beta1.StartHandedOver {
				observe(c.notReady.WithLabelValues(method), c.clock.Since(since))
			}
		}
		if last.StartResult != "" && s.StartResult != "" && (s.ContainerID != last.ContainerID || s.RestartAnnotation != last.RestartAnnotation) {
			c.start(h, last, s, method)
			delete(h.methods, s.Name)
		}
	}
	for name := range before { // scaled in
		delete(h.unavailable, name)
	}
}

// start counts what a shard kept when it started again. The figures are an agent's, and a counter that
// is decreased panics.
func (c *Changes) start(h *history, last, s *v1beta1.ShardStatus, method string) {
	before, items := max(s.ItemsBefore, 0), max(s.Items, 0)
	if s.StartResult == v1beta1.StartCold {
		if before == 0 {
			before = max(last.Items, 0)
		}
		if method != string(v1beta1.UpdateReplace) {
			h.losses++
			h.lastLoss = c.clock.Now()
		}
		c.items.WithLabelValues("lost").Add(float64(before))
		return
	}
	kept := min(items, before)
	c.items.WithLabelValues("kept").Add(float64(kept))
	c.items.WithLabelValues("lost").Add(float64(before - kept))
	if s.StartResult == v1beta1.StartHandedOver {
		observe(c.notReady.WithLabelValues(method), time.Duration(s.GapMilliseconds)*time.Millisecond)
	}
}

// observe adds a duration. One that is negative, as the clock was set back, would decrease the sum.
func observe(to prometheus.Observer, d time.Duration) { to.Observe(max(d, 0).Seconds()) }
