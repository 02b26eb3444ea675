package metrics

import (
	"math"
	"runtime"
	"strconv"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/forwarder"
	"github.com/memcached-operator/memcached-operator/internal/agent/sizing"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Input is what an answer reports.
type Input struct {
	// Reading is nil if memcached did not answer.
	Reading *Reading
	Process Process
	Status  wire.Status
	Serving bool
	History History
	// Probes are the round trips to memcached since the agent's start.
	Probes Probes
	// Connections is nil unless the agent forwards the connections of clients.
	Connections *forwarder.Connections
	// Restored and DroppedLines count since the start of memcached.
	Restored, DroppedLines int64
	// WorkingSet and MemoryLimit are those of the container in bytes, NaN if unknown.
	WorkingSet, MemoryLimit float64
	// EvictionAge is the least idle time of the items that are being evicted, in seconds;
	// NaN while none are.
	EvictionAge float64
	// Idle is nil before the first sample, and if the memory file can't be read.
	Idle *Idle
	// Size is nil likewise.
	Size *sizing.Report
}

// IdleTimes are the times of Idle in seconds, with their labels.
var (
	IdleTimes  = [...]uint32{300, 3600, 86400}
	idleLabels = [len(IdleTimes)]string{"5m", "1h", "1d"}
)

// Idle is the estimated memory of the items that have not been used for each of IdleTimes: that
// of items which no client has read since they were stored, and of the others.
type Idle struct {
	Never, Before [len(IdleTimes)]int64
	// Items is the size of the sample.
	Items int64
}

// Add counts an item that has been idle for a few seconds.
func (i *Idle) Add(seconds uint32, fetched bool, bytes int64) {
	i.Items++
	to := &i.Never
	if fetched {
		to = &i.Before
	}
	for at, least := range IdleTimes {
		if seconds >= least {
			to[at] += bytes
		}
	}
}

func (i *Idle) write(w *writer) {
	for at, idle := range idleLabels {
		w.sample("memcached_agent_idle_bytes", label("idle", idle)+","+label("read", "never"), float64(i.Never[at]))
		w.sample("memcached_agent_idle_bytes", label("idle", idle)+","+label("read", "before"), float64(i.Before[at]))
	}
	w.sample("memcached_agent_idle_sample_items", "", float64(i.Items))
}

// History counts what happened in the life of a pod, in the data volume.
type History struct {
	Starts map[wire.StartResult]int64 `json:"starts,omitempty"`
	// UnavailableSeconds is the time in which memcached did not answer, LastOutage its last
	// part that is over.
	UnavailableSeconds float64 `json:"unavailableSeconds,omitempty"`
	LastOutage         float64 `json:"lastOutage,omitempty"`
	// UnavailableSince is zero while memcached answers, and before its first start.
	UnavailableSince time.Time `json:"unavailableSince,omitzero"`
	// AnsweredAt is when memcached last answered.
	AnsweredAt time.Time `json:"answeredAt,omitzero"`

	Saves       int64     `json:"saves,omitempty"`
	FailedSaves int64     `json:"failedSaves,omitempty"`
	SavedAt     time.Time `json:"savedAt,omitzero"`
	SaveSeconds float64   `json:"saveSeconds,omitempty"`
	SavedItems  int64     `json:"savedItems,omitempty"`

	Drains    int64     `json:"drains,omitempty"`
	DrainedAt time.Time `json:"drainedAt,omitzero"`

	// Handovers of this pod as the target, and those as the source that failed: a source
	// that has handed over its items exits.
	Received       int64 `json:"received,omitempty"`
	FailedReceived int64 `json:"failedReceived,omitempty"`
	FailedSent     int64 `json:"failedSent,omitempty"`
	// Handover is the last start with the items of another pod.
	Handover *wire.Start `json:"handover,omitempty"`
}

// probeBounds are the upper bounds of the histogram's buckets, in seconds.
var probeBounds = [...]float64{0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1}

// Probes is a histogram of durations.
type Probes struct {
	buckets [len(probeBounds) + 1]uint64
	seconds float64
}

// Add counts one duration.
func (p *Probes) Add(d time.Duration) {
	seconds := d.Seconds()
	i := 0
	for i < len(probeBounds) && seconds > probeBounds[i] {
		i++
	}
	p.buckets[i]++
	p.seconds += seconds
}

func (p *Probes) write(w *writer, name string) {
	w.head(name)
	var count uint64
	for i, n := range p.buckets {
		count += n
		bound := "+Inf"
		if i < len(probeBounds) {
			bound = strconv.FormatFloat(probeBounds[i], 'g', -1, 64)
		}
		w.line(name+"_bucket", label("le", bound), float64(count))
	}
	w.line(name+"_sum", "", p.seconds)
	w.line(name+"_count", "", float64(count))
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// unix returns a time as Unix time in seconds, and 0 for the zero time.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// ownFDs are the files of memcached besides reserved_fds and connections: measured with
// 1.6.18, 1.6.38 and 1.6.45.
const ownFDs = 10

var (
	maxConnections = slot("settings:maxconns")
	reservedFDs    = slot("stats:reserved_fds")
	totalMalloced  = slot("slabs:total_malloced")
	usedChunks     = slot("slabs:used_chunks")
	chunkSize      = slot("slabs:chunk_size")
	requestedBytes = slot("items:mem_requested")
	evicted        = slot("items:evicted")
	evictedTime    = slot("items:evicted_time")
	getHits        = slot("stats:get_hits")
	touchHits      = slot("stats:touch_hits")
	stored         = slot("stats:cmd_set")
	evictions      = slot("stats:evictions")
	evictedUnread  = slot("stats:evicted_unfetched")
	refused        = slot("stats:store_no_memory")
	memoryLimit    = slot("stats:limit_maxbytes")
	flushes        = slot("stats:cmd_flush")
)

// slabBytes returns the memory of the slab pages by what it is used for.
func slabBytes(r *Reading) (requested, overhead, free float64) {
	malloced := r.class[0].values[totalMalloced]
	var used float64
	for _, n := range r.numbers {
		c := r.class[n]
		chunks := c.values[usedChunks] * c.values[chunkSize]
		if !math.IsNaN(chunks) {
			used += chunks
		}
		if bytes := c.values[requestedBytes]; !math.IsNaN(bytes) {
			requested += bytes
		}
	}
	// The two answers are of different moments.
	return requested, max(used-requested, 0), max(malloced-used, 0)
}

// agent writes the metrics that are not in memcached's answers as such.
func (w *writer) agent(in *Input) {
	r := in.Reading
	w.sample("memcached_up", "", boolean(r != nil))
	if r != nil {
		w.sample("memcached_version", label("version", r.version), 1)
	}
	w.process(&in.Process)
	status, history := &in.Status, &in.History
	w.sample("memcached_agent_build_info", label("version", status.AgentVersion)+","+label("goversion", runtime.Version()), 1)
	for _, phase := range wire.Phases {
		w.sample("memcached_agent_phase", label("phase", string(phase)), boolean(status.Phase == phase))
	}
	w.sample("memcached_agent_ready", "", boolean(in.Serving && r != nil))
	w.sample("memcached_agent_arguments_refused", "", boolean(status.ArgumentsError != ""))
	if status.Secrets != nil && status.Secrets.Certificate.SHA256 != "" {
		c := &status.Secrets.Certificate
		w.sample("memcached_agent_certificate_not_before_timestamp_seconds", "", unix(c.NotBefore))
		w.sample("memcached_agent_certificate_not_after_timestamp_seconds", "", unix(c.NotAfter))
		w.sample("memcached_agent_certificate_rejected", "", boolean(c.Error != ""))
		w.sample("memcached_agent_plain_connections", "", float64(c.PlainConnections))
	}
	if c := in.Connections; c != nil {
		w.sample("memcached_agent_plain_connections_total", "", float64(c.AllPlain))
		w.sample("memcached_agent_silent_connections", "", float64(c.Silent))
		w.sample("memcached_agent_forwarded_connections", "", float64(c.Forwarded))
		w.sample("memcached_agent_connections_refused_total", "", float64(c.Refused))
	}
	w.starts(&status.Start, history)
	w.stops(history)
	w.handovers(history)
	if in.Serving {
		w.sample("memcached_agent_settings_restored_total", "", float64(in.Restored))
		w.sample("memcached_agent_log_lines_dropped_total", "", float64(in.DroppedLines))
	}
	if s := status.Scaling; s != nil && s.ID != "" {
		w.sample("memcached_agent_scaling_items", label("fate", "copied"), float64(s.Moved))
		w.sample("memcached_agent_scaling_items", label("fate", "deleted"), float64(s.Deleted))
		w.sample("memcached_agent_scaling_items", label("fate", "purged"), float64(s.Purged))
		w.sample("memcached_agent_scaling_stale_seconds", "", s.StaleSeconds)
	}
	in.Probes.write(w, "memcached_agent_probe_duration_seconds")
	w.sample("memcached_agent_memory_working_set_bytes", "", in.WorkingSet)
	w.sample("memcached_agent_memory_limit_bytes", "", in.MemoryLimit)
	if r != nil {
		w.sample("memcached_agent_usable_connections", "", r.class[0].values[maxConnections]-r.class[0].values[reservedFDs]-ownFDs)
		requested, overhead, free := slabBytes(r)
		w.sample("memcached_agent_slab_bytes", label("kind", "requested"), requested)
		w.sample("memcached_agent_slab_bytes", label("kind", "overhead"), overhead)
		w.sample("memcached_agent_slab_bytes", label("kind", "free"), free)
	}
	w.sample("memcached_agent_eviction_age_seconds", "", in.EvictionAge)
	if in.Idle != nil {
		in.Idle.write(w)
	}
	w.size(in)
}

// usedWithin are the labels of Report.Used.
var usedWithin = [...]string{"5m", "1h", "1d", "7d"}

// size writes the recommended memory with its inputs, or why there is none.
func (w *writer) size(in *Input) {
	reason := sizing.NoData
	switch {
	case !in.Serving:
		reason = sizing.Updating
	case in.Size != nil && in.Size.Bytes > 0:
		w.sample("memcached_agent_recommended_memory_bytes", label("reason", string(in.Size.Reason)), float64(in.Size.Bytes))
		reason = ""
	case in.Size != nil:
		reason = in.Size.Reason
	}
	if reason != "" {
		w.sample("memcached_agent_recommendation_absent", label("reason", string(reason)), 1)
	}
	if in.Size == nil {
		return
	}
	w.sample("memcached_agent_recommendation_observed_seconds", "", in.Size.Observed.Seconds())
	for i, window := range usedWithin {
		w.sample("memcached_agent_used_memory_bytes", label("window", window), in.Size.Used[i])
	}
	for i, part := range sizing.Parts {
		w.sample("memcached_agent_lost_hits_ratio", label("memory", strconv.Itoa(part)), in.Size.Lost[i])
	}
}

// Counters returns what the recommended memory follows from.
func (r *Reading) Counters() sizing.Counters {
	v := r.class[0].values
	return sizing.Counters{Hits: v[getHits] + v[touchHits], Stored: v[stored], Evicted: v[evictions], EvictedUnread: v[evictedUnread], Refused: v[refused]}
}

// Flushes is how often clients have emptied memcached.
func (r *Reading) Flushes() float64 { return r.class[0].values[flushes] }

// Limit is memcached's memory limit.
func (r *Reading) Limit() float64 { return r.class[0].values[memoryLimit] }

func (w *writer) process(p *Process) {
	w.sample("memcached_process_cpu_seconds_total", "", p.CPUSeconds)
	w.sample("memcached_process_resident_memory_bytes", "", p.ResidentBytes)
	w.sample("memcached_process_virtual_memory_bytes", "", p.VirtualBytes)
	w.sample("memcached_process_virtual_memory_max_bytes", "", p.MaxVirtualBytes)
	w.sample("memcached_process_open_fds", "", p.OpenFDs)
	w.sample("memcached_process_max_fds", "", p.MaxFDs)
	w.sample("memcached_process_start_time_seconds", "", p.StartTime)
	w.sample("memcached_process_network_receive_bytes_total", "", p.ReceivedBytes)
	w.sample("memcached_process_network_transmit_bytes_total", "", p.SentBytes)
}

// starts writes what is known of the last start, and the number of all.
func (w *writer) starts(start *wire.Start, h *History) {
	w.sample("memcached_agent_start_timestamp_seconds", "", unix(start.At))
	if result := start.Result; result != "" {
		w.sample("memcached_agent_start_info", label("result", string(result)), 1)
	}
	w.sample("memcached_agent_start_items", "", float64(start.Items))
	w.sample("memcached_agent_start_items_before", "", float64(start.ItemsBefore))
	for _, result := range wire.StartResults {
		w.sample("memcached_agent_starts_total", label("result", string(result)), float64(h.Starts[result]))
	}
	w.sample("memcached_agent_unavailable_seconds_total", "", h.UnavailableSeconds)
	w.sample("memcached_agent_last_outage_seconds", "", h.LastOutage)
}

// stops writes what is known of saves and drains.
func (w *writer) stops(h *History) {
	w.sample("memcached_agent_saves_total", label("result", "saved"), float64(h.Saves))
	w.sample("memcached_agent_saves_total", label("result", "failed"), float64(h.FailedSaves))
	w.sample("memcached_agent_save_timestamp_seconds", "", unix(h.SavedAt))
	w.sample("memcached_agent_save_duration_seconds", "", h.SaveSeconds)
	w.sample("memcached_agent_save_items", "", float64(h.SavedItems))
	w.sample("memcached_agent_drains_total", "", float64(h.Drains))
	w.sample("memcached_agent_drain_started_timestamp_seconds", "", unix(h.DrainedAt))
}

func (w *writer) handovers(h *History) {
	w.sample("memcached_agent_handovers_total", label("role", "target")+","+label("result", "completed"), float64(h.Received))
	w.sample("memcached_agent_handovers_total", label("role", "target")+","+label("result", "failed"), float64(h.FailedReceived))
	w.sample("memcached_agent_handovers_total", label("role", "source")+","+label("result", "failed"), float64(h.FailedSent))
	last := h.Handover
	if last == nil {
		return
	}
	w.sample("memcached_agent_handover_info", label("mode", string(last.Mode)), 1)
	w.sample("memcached_agent_handover_stale_seconds", "", last.StaleSeconds)
	w.sample("memcached_agent_handover_items", "", float64(last.Items))
	w.sample("memcached_agent_handover_items_before", "", float64(last.ItemsBefore))
	w.sample("memcached_agent_handover_duration_seconds", "", last.HandoverSeconds)
	w.sample("memcached_agent_handover_gap_seconds", "", last.GapSeconds)
}
