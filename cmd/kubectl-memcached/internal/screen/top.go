package screen

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/memcached-operator/memcached-operator/internal/text"
)

// comparedRequests a second are those of a Memcached from which its shards are compared. The alert MemcachedShardDeviates has the same.
const comparedRequests = 10

// Top is the screen of what shards do now.
type Top struct {
	Shards []Busy `json:"shards"`
	// More is how many Memcacheds are not shown.
	More int64 `json:"more,omitempty"`
	// Omitted says in sentences what couldn't be read, and why.
	Omitted []string `json:"omitted,omitempty"`
	// Width is that of the terminal, in which a line that wraps moves the first ones off the screen. 0 is none.
	Width int `json:"-"`

	namespaces bool
}

// Busy is what a shard does now. What isn't known is nil.
type Busy struct {
	Namespace string `json:"namespace"`
	Memcached string `json:"memcached"`
	Shard     string `json:"shard"`
	Pod       string `json:"pod,omitempty"`
	// The next four are of the last window.
	RequestsPerSecond  *float64 `json:"requestsPerSecond,omitempty"`
	HitRatio           *float64 `json:"hitRatio,omitempty"`
	EvictionsPerSecond *float64 `json:"evictionsPerSecond,omitempty"`
	CPU                *float64 `json:"cpu,omitempty"`
	// EvictionAgeSeconds is for how long no client had used the items that memcached evicts.
	EvictionAgeSeconds *float64    `json:"evictionAgeSeconds,omitempty"`
	Bytes              *float64    `json:"bytes,omitempty"`
	MaxBytes           *float64    `json:"maxBytes,omitempty"`
	Connections        *float64    `json:"connections,omitempty"`
	Deviations         []Deviation `json:"deviations,omitempty"`
}

// Deviation is by how much a figure of a shard is off the median of its siblings, relative to it.
type Deviation struct {
	Figure string  `json:"figure"`
	Ratio  float64 `json:"ratio"`
}

// figures of shards are compared. The alert MemcachedShardDeviates has the same.
var figures = []struct {
	name string
	of   func(Busy) *float64
}{
	{"hit ratio", func(b Busy) *float64 { return b.HitRatio }},
	{"requests", func(b Busy) *float64 { return b.RequestsPerSecond }},
	{"evictions", func(b Busy) *float64 { return b.EvictionsPerSecond }},
}

// NewTop returns the screen of shards, which are in the order of their Memcacheds, with their last samples, oldest first.
func NewTop(shards []Place, samples map[Place][]Sample, namespaces bool, more int64, omitted []string) Top {
	t := Top{Shards: make([]Busy, 0, len(shards)), More: more, Omitted: omitted, namespaces: namespaces}
	for len(shards) > 0 {
		of := shards[0]
		end := slices.IndexFunc(shards, func(s Place) bool { return s.Namespace != of.Namespace || s.Memcached != of.Memcached })
		if end < 0 {
			end = len(shards)
		}
		t.Shards = append(t.Shards, siblings(shards[:end], samples)...)
		shards = shards[end:]
	}
	return t
}

// siblings returns the shards of a Memcached.
func siblings(shards []Place, samples map[Place][]Sample) []Busy {
	windows := make([][]Busy, siblingWindows) // oldest first
	for at := range windows {
		for _, s := range shards {
			windows[at] = append(windows[at], busy(s, samples[s], siblingWindows-1-at))
		}
	}
	last := windows[len(windows)-1]
	for _, f := range figures {
		values := make([][]float64, len(windows))
		for at, window := range windows {
			load := 0.
			for _, b := range window {
				value := math.NaN()
				if known := f.of(b); known != nil {
					value = *known
				}
				values[at] = append(values[at], value)
				if b.RequestsPerSecond != nil {
					load += *b.RequestsPerSecond
				}
			}
			if load <= comparedRequests {
				clear(values[at]) // a median of 0 has no deviations
			}
		}
		for i, ratio := range Deviating(values) {
			if ratio != 0 {
				last[i].Deviations = append(last[i].Deviations, Deviation{f.name, ratio})
			}
		}
	}
	return last
}

// busy returns what a shard did in a window, which is the last one, or one so many windows before it.
func busy(s Place, samples []Sample, ago int) Busy {
	b := Busy{Namespace: s.Namespace, Memcached: s.Memcached, Shard: s.Shard, Pod: s.Pod}
	at := len(samples) - 1 - ago
	if at < 0 {
		return b
	}
	now := samples[at]
	b.Bytes, b.MaxBytes = now.value("memcached_current_bytes"), now.value("memcached_limit_bytes")
	b.Connections, b.EvictionAgeSeconds = now.value("memcached_current_connections"), now.value("memcached_agent_eviction_age_seconds")
	if at == 0 {
		return b
	}
	per := func(of func(Sample) *float64) *float64 { return rate(samples[at-1], now, of) }
	b.RequestsPerSecond = per(func(s Sample) *float64 { return s.sum("memcached_commands_total") })
	b.EvictionsPerSecond = per(func(s Sample) *float64 { return s.value("memcached_items_evicted_total") })
	b.CPU = per(func(s Sample) *float64 { return s.value("memcached_process_cpu_seconds_total") })
	lookups := func(status ...string) *float64 {
		return per(func(s Sample) *float64 {
			gets, touches := s.sum("memcached_commands_total", append(status, `command="get"`)...), s.sum("memcached_commands_total", append(status, `command="touch"`)...)
			if gets == nil || touches == nil {
				return gets
			}
			return new(*gets + *touches)
		})
	}
	if all, hits := lookups(), lookups(`status="hit"`); all != nil && hits != nil && *all > 0 {
		b.HitRatio = new(*hits / *all)
	}
	return b
}

// Text returns the screen for a terminal.
func (t Top) Text() string {
	var out, table strings.Builder
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		if !t.namespaces {
			cells = cells[1:]
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	if len(t.Shards) == 0 {
		out.WriteString("There is no shard.\n")
	} else {
		row("NAMESPACE", "SHARD", "REQUESTS/S", "HITS", "EVICTION AGE", "MEMORY", "CONNECTIONS", "CPU", "DEVIATES")
	}
	for _, b := range t.Shards {
		row(b.Namespace, b.Shard, written(b.RequestsPerSecond, "%.0f"), percent(b.HitRatio, new(1.)), age(b.EvictionAgeSeconds), percent(b.Bytes, b.MaxBytes), written(b.Connections, "%.0f"),
			written(b.CPU, "%.2f"), b.deviations())
	}
	_ = tw.Flush() // to a strings.Builder
	for line := range strings.Lines(table.String()) {
		if t.Width > 0 && len(line) > t.Width+len("\n") {
			line = line[:t.Width] + "\n"
		}
		out.WriteString(line)
	}
	if t.More > 0 {
		fmt.Fprintf(&out, "%s not shown: name a namespace with -n, or raise --limit\n", isOrAre(t.More))
	}
	for _, o := range t.Omitted {
		fmt.Fprintf(&out, "Not shown  %s\n", o)
	}
	return out.String()
}

func isOrAre(n int64) string {
	if n == 1 {
		return "1 Memcached is"
	}
	return text.Thousands(n) + " Memcacheds are"
}

func (b Busy) deviations() string {
	all := make([]string, 0, len(b.Deviations))
	for _, d := range b.Deviations {
		all = append(all, fmt.Sprintf("%s %+.0f%%", d.Figure, d.Ratio*100))
	}
	return orDash(strings.Join(all, ", "))
}

func written(value *float64, format string) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf(format, *value)
}

func percent(part, of *float64) string {
	if part == nil || of == nil || *of <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100**part / *of)
}

func age(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return duration.HumanDuration(time.Duration(*seconds * float64(time.Second)))
}
