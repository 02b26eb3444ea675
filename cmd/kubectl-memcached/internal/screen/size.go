package screen

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// mebibyte is the unit of recommendations.
const mebibyte = 1 << 20

// Series of a shard's agent about the memory that it needs.
const (
	recommendedSeries = "memcached_agent_recommended_memory_bytes"
	absentSeries      = "memcached_agent_recommendation_absent"
)

// The reasons of recommendations.
const (
	reasonEnough  = "Enough"
	reasonUnused  = "Unused"
	reasonEvicted = "EvictedEarly"
	reasonRefused = "WritesRefused"
)

// directions are how a recommendation for the memory of a reason compares with that memory.
var directions = map[string]int{reasonEnough: 0, reasonUnused: -1, reasonEvicted: 1, reasonRefused: 1}

// reasonTexts are the reasons of the agents, in words.
var reasonTexts = map[string]string{
	reasonEnough:  "the memory is enough",
	reasonUnused:  "the items that clients use need less memory",
	reasonEvicted: "memcached evicts items that clients would read again",
	reasonRefused: "memcached rejects items because it has no memory for them",
	"ColdStart":   "no recommendation: the shard started without its items less than an hour ago",
	"Observing":   "no recommendation: the agent has not observed seven days with this memory yet",
	"Updating":    "no recommendation: the shard receives or hands over its items, or stops",
	"NoData":      "no recommendation: the agent can't read the statistics or the items of memcached",
}

// Size is the screen of the memory that a Memcached needs.
type Size struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// MemoryBytes is that of spec.memory, and RecommendedBytes what the agents recommend for it; nil if they don't.
	MemoryBytes      int64  `json:"memoryBytes"`
	RecommendedBytes *int64 `json:"recommendedBytes,omitempty"`
	// Reason is that of the shard that decides, and Sentence says it in words.
	Reason   string      `json:"reason,omitempty"`
	Sentence string      `json:"sentence"`
	Shards   []ShardSize `json:"shards"`
	// Command applies the recommendation.
	Command string   `json:"command,omitempty"`
	Omitted []string `json:"omitted,omitempty"`

	flags string
}

// ShardSize is what a shard needs.
type ShardSize struct {
	Name             string `json:"name"`
	RecommendedBytes *int64 `json:"recommendedBytes,omitempty"`
	// Used are the bytes of the items that clients used within an hour, a day and a week.
	Used [3]*float64 `json:"usedBytes"`
	// Reason is the agent's, and ReasonText says it in words.
	Reason     string `json:"reason,omitempty"`
	ReasonText string `json:"reasonText"`
}

var usedWindows = [3]string{"1h", "1d", "7d"}

// NewSize returns the memory that a Memcached needs by the metrics of its shards. Each shard has spec.memory, so the largest
// recommendation counts, and without those of all shards it is no smaller one.
func NewSize(in Input) Size {
	m := in.Memcached
	s := Size{Namespace: m.Namespace, Name: m.Name, Shards: make([]ShardSize, 0, len(m.Status.Shards)), Omitted: in.Omitted, flags: in.Flags}
	if m.Spec.Memory != nil {
		s.MemoryBytes = m.Spec.Memory.Value()
	}
	var most, absent *ShardSize
	for _, shard := range m.Status.Shards {
		s.Shards = append(s.Shards, newShardSize(shard.Name, in.Samples[shard.PodName]))
		last := &s.Shards[len(s.Shards)-1]
		switch {
		case last.RecommendedBytes == nil:
			absent = last
		case most == nil || *last.RecommendedBytes > *most.RecommendedBytes:
			most = last
		}
	}
	switch {
	case most != nil && (absent == nil || *most.RecommendedBytes > s.MemoryBytes):
		s.recommend(*most)
	case absent != nil:
		s.Reason, s.Sentence = absent.Reason, absent.Name+": "+absent.ReasonText
	default:
		s.Sentence = "no recommendation: there is no shard"
	}
	return s
}

// recommend recommends what the shard needs that needs most.
func (s *Size) recommend(of ShardSize) {
	whole, has := (*of.RecommendedBytes+mebibyte-1)/mebibyte, s.MemoryBytes/mebibyte // shards have whole mebibytes
	s.Reason = of.Reason
	switch direction, known := directions[of.Reason]; {
	case s.MemoryBytes > 0 && known && cmp.Compare(whole, has) != direction:
		s.Sentence = fmt.Sprintf("no recommendation: not all shards have spec.memory yet; \"kubectl memcached why %s %s\" says what they wait for", s.Name, s.flags)
		return
	case s.MemoryBytes <= 0 || whole == has:
		s.Sentence = of.ReasonText
		return
	}
	n := int64(len(s.Shards))
	s.RecommendedBytes = new(whole * mebibyte)
	s.Sentence = fmt.Sprintf("%dMi instead of %s a shard, %dMi instead of %s in all: %s", whole, mebibytes(s.MemoryBytes), n*whole, mebibytes(n*s.MemoryBytes), of.ReasonText)
	s.Command = fmt.Sprintf(`kubectl %s patch memcached %s --type=merge -p '{"spec":{"memory":"%dMi"}}'`, s.flags, s.Name, whole)
}

func newShardSize(name string, sample Sample) ShardSize {
	s := ShardSize{Name: name, ReasonText: "no recommendation: its agent doesn't have this metric"}
	if sample.Series == nil {
		s.ReasonText = "no recommendation: its agent did not answer"
	}
	if reason, bytes := sample.labeled(recommendedSeries); bytes != nil {
		s.Reason, s.RecommendedBytes = reason, new(int64(*bytes))
	} else if reason, absent := sample.labeled(absentSeries); absent != nil {
		s.Reason = reason
	}
	if s.Reason != "" {
		s.ReasonText = reasonText(s.Reason)
	}
	if observed := sample.value("memcached_agent_recommendation_observed_seconds"); observed != nil && s.Reason == "Observing" {
		s.ReasonText += ", but " + duration.HumanDuration(time.Duration(*observed)*time.Second)
	}
	for i, window := range usedWindows {
		s.Used[i] = sample.value(fmt.Sprintf("memcached_agent_used_memory_bytes{window=%q}", window))
	}
	return s
}

// reasonText returns a reason in words, or its name if a later release has added it.
func reasonText(reason string) string {
	if known := reasonTexts[reason]; known != "" {
		return known
	}
	return reason
}

// labeled returns the only series of a name, and the value of its label reason.
func (s Sample) labeled(name string) (reason string, value *float64) {
	for series, v := range s.Series {
		if label, ok := strings.CutPrefix(series, name+`{reason="`); ok {
			return strings.TrimSuffix(label, `"}`), &v
		}
	}
	return "", nil
}

// recommendation is the line of the status; empty if no agent has the metric, or the memory is enough.
func recommendation(in Input) string {
	for _, sample := range in.Samples {
		if _, bytes := sample.labeled(recommendedSeries); bytes != nil {
			if s := NewSize(in); s.RecommendedBytes != nil {
				return s.Sentence
			}
		}
	}
	return ""
}

// Text returns the screen for a terminal.
func (s Size) Text() string {
	var out strings.Builder
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(tw, strings.Join(cells, "\t")) }
	row("SHARD", "MEMORY", "RECOMMENDED", "USED IN 1H", "IN 1D", "IN 7D", "WHY")
	var total int64
	complete, used := true, [3]*float64{}
	for i, shard := range s.Shards {
		recommended := "-"
		if shard.RecommendedBytes != nil {
			recommended = mebibytes(*shard.RecommendedBytes)
			total += *shard.RecommendedBytes
		} else {
			complete = false
		}
		for w, bytes := range shard.Used {
			if bytes == nil || i > 0 && used[w] == nil {
				used[w] = nil // a part isn't the sum
			} else {
				used[w] = new(*bytes + valueOf(used[w]))
			}
		}
		row(shard.Name, mebibytes(s.MemoryBytes), recommended, usedText(shard.Used[0]), usedText(shard.Used[1]), usedText(shard.Used[2]), shard.ReasonText)
	}
	sum := "-"
	if complete {
		sum = mebibytes(total)
	}
	row("sum", mebibytes(s.MemoryBytes*int64(len(s.Shards))), sum, usedText(used[0]), usedText(used[1]), usedText(used[2]), "")
	_ = tw.Flush() // to a strings.Builder
	fmt.Fprintf(&out, "\nRecommendation: %s\n", s.Sentence)
	if s.Command != "" {
		fmt.Fprintf(&out, "Apply it: %s\n", s.Command)
	}
	for _, o := range s.Omitted {
		fmt.Fprintf(&out, "Not shown  %s\n", o)
	}
	return out.String()
}

func valueOf(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

func usedText(bytes *float64) string {
	if bytes == nil {
		return "-"
	}
	return mebibytes(int64(*bytes))
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%dMi", (bytes+mebibyte-1)/mebibyte) }
