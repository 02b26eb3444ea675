package screen

import (
	"strconv"
	"strings"
	"time"
)

// Place is where a shard runs.
type Place struct{ Namespace, Memcached, Shard, Pod string }

// Sample is what an agent's metrics said at a time.
type Sample struct {
	At time.Time
	// Series are the values, by the name and the labels.
	Series map[string]float64
}

// NewSample parses metrics. It ignores what it can't parse.
func NewSample(text string, at time.Time) Sample {
	s := Sample{At: at, Series: map[string]float64{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		if value, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
			s.Series[line[:i]] = value
		}
	}
	return s
}

// value returns the series without labels; nil if there is none.
func (s Sample) value(name string) *float64 {
	value, exists := s.Series[name]
	if !exists {
		return nil
	}
	return &value
}

// sum adds up the series of a name that have all labels.
func (s Sample) sum(name string, labels ...string) *float64 {
	var total *float64
	for series, value := range s.Series {
		rest, ok := strings.CutPrefix(series, name)
		if !ok || rest != "" && rest[0] != '{' || !hasAll(rest, labels) {
			continue
		}
		if total == nil {
			total = new(float64)
		}
		*total += value
	}
	return total
}

func hasAll(text string, labels []string) bool {
	for _, l := range labels {
		if !strings.Contains(text, l) {
			return false
		}
	}
	return true
}

// rate returns by how much a counter has grown in a second; nil if it isn't known, such as after a restart.
func rate(before, after Sample, of func(Sample) *float64) *float64 {
	from, to, seconds := of(before), of(after), after.At.Sub(before.At).Seconds()
	if from == nil || to == nil || *to < *from || seconds <= 0 {
		return nil
	}
	return new((*to - *from) / seconds)
}
