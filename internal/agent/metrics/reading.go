package metrics

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strconv"
	"time"
)

// MaxClasses is the largest number of a slab class, POWER_LARGEST in memcached.h.
const MaxClasses = 256

// Reading is what memcached reported about itself. It can be used again.
type Reading struct {
	version string
	// class has the general values at 0, and those of the slab classes. numbers are the
	// classes that memcached reported, in ascending order.
	class   [MaxClasses + 1]*values
	numbers []int

	evictions [MaxClasses + 1]eviction
}

// eviction is what is known of a class since an earlier reading.
type eviction struct {
	count float64
	at    time.Time
}

// values are stats by their slots; NaN without a stat.
type values struct {
	values []float64
	used   bool
}

func (v *values) sum(plus, minus []int) float64 {
	var total float64
	for _, at := range plus {
		total += v.values[at]
	}
	for _, at := range minus {
		total -= v.values[at]
	}
	return total
}

// reset forgets all values.
func (r *Reading) reset() {
	r.version, r.numbers = "", r.numbers[:0]
	for _, c := range r.class {
		if c == nil {
			continue
		}
		c.used = false
		for i := range c.values {
			c.values[i] = math.NaN()
		}
	}
}

func (r *Reading) of(class int) *values {
	c := r.class[class]
	if c == nil {
		c = &values{values: make([]float64, slotCount)}
		for i := range c.values {
			c.values[i] = math.NaN()
		}
		r.class[class] = c
	}
	if !c.used && class > 0 {
		r.numbers = append(r.numbers, class)
	}
	c.used = true
	return c
}

// Conn asks memcached.
type Conn interface {
	EachStat(ctx context.Context, request string, visit func(name, value []byte)) error
}

// Read replaces the reading by memcached's present answers.
func (r *Reading) Read(ctx context.Context, conn Conn) error {
	r.reset()
	r.of(0)
	for request, text := range requests {
		if err := conn.EachStat(ctx, text, func(name, value []byte) { r.add(request, name, value) }); err != nil {
			return err
		}
	}
	slices.Sort(r.numbers)
	return nil
}

func (r *Reading) add(request int, name, value []byte) {
	class := 0
	if request == items {
		name = bytes.TrimPrefix(name, []byte("items:"))
	}
	if before, rest, ok := bytes.Cut(name, []byte(":")); ok && (request == items || request == slabs) {
		n, err := strconv.Atoi(string(before))
		if err != nil || n < 1 || n > MaxClasses {
			return
		}
		class, name = n, rest
	}
	if request == 0 && string(name) == "version" {
		r.version = string(value)
		return
	}
	at, ok := slots[request][string(name)]
	if !ok {
		return
	}
	number, ok := parse(value)
	if ok {
		r.of(class).values[at] = number
	}
}

// parse returns false for a value that is no number and no switch.
func parse(value []byte) (float64, bool) {
	switch string(value) {
	case "yes", "on":
		return 1, true
	case "no", "off":
		return 0, true
	}
	number, err := strconv.ParseFloat(string(value), 64)
	return number, err == nil && !math.IsInf(number, 0) && !math.IsNaN(number)
}

// evictionWindow is how long after an eviction a slab class counts as one that evicts.
const evictionWindow = 5 * time.Minute

// EvictionAge returns the least evicted_time of the classes that evict, and NaN if none
// does.
func (r *Reading) EvictionAge(now time.Time) float64 {
	age := math.NaN()
	for _, n := range r.numbers {
		count, seconds, last := r.class[n].values[evicted], r.class[n].values[evictedTime], &r.evictions[n]
		if math.IsNaN(count) {
			continue
		}
		if count > last.count {
			last.at = now
		}
		last.count = count // fewer after a restart of memcached
		if count > 0 && now.Sub(last.at) < evictionWindow && !(age <= seconds) {
			age = seconds
		}
	}
	return age
}
