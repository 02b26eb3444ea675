package process

import (
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

func TestRecentLookupsCountTheLastMinute(t *testing.T) {
	type count struct {
		second        int
		lookups, hits int64
	}
	// every returns the counters of a memcached with 10 lookups and 9 hits a second.
	every := func(seconds ...int) []count {
		var counts []count
		for _, s := range seconds {
			counts = append(counts, count{s, int64(10 * s), int64(9 * s)})
		}
		return counts
	}
	for name, c := range map[string]struct {
		added         []count
		now           count
		lookups, hits int64
	}{
		"right after the start":               {nil, count{0, 3, 2}, 3, 2},
		"before the first sample":             {nil, count{7, 70, 63}, 70, 63},
		"within the first minute":             {every(10, 20, 30), count{33, 330, 297}, 330, 297},
		"after exactly a minute":              {every(10, 20, 30, 40, 50, 60), count{60, 600, 540}, 600, 540},
		"later":                               {every(10, 20, 30, 40, 50, 60, 70, 80), count{85, 850, 765}, 550, 495},
		"much later":                          {every(1000, 1010, 1020, 1030, 1040, 1050, 1060), count{1060, 10600, 9540}, 600, 540},
		"without lookups":                     {[]count{{10, 50, 5}, {20, 50, 5}, {80, 50, 5}}, count{90, 50, 5}, 0, 0},
		"without responses for minutes":       {every(10, 20), count{300, 3000, 2700}, 2800, 2520},
		"after a reset of the counters":       {[]count{{10, 100, 90}, {20, 30, 20}, {30, 130, 110}}, count{35, 180, 155}, 180, 155},
		"after a reset since the last sample": {every(10, 20), count{25, 30, 20}, 30, 20},
		"after a reset that only hits show":   {[]count{{10, 100, 90}}, count{15, 120, 20}, 120, 20},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			stats := func(c count) (time.Time, protocol.General) {
				return start.Add(time.Duration(c.second) * time.Second), protocol.General{Lookups: c.lookups, Hits: c.hits}
			}
			r := newRecentLookups(start)
			for _, c := range c.added {
				r.add(stats(c))
			}
			if lookups, hits := r.count(stats(c.now)); lookups != c.lookups || hits != c.hits {
				t.Errorf("%d lookups and %d hits, want %d and %d", lookups, hits, c.lookups, c.hits)
			}
		})
	}
}

func TestRecentLookupsDropOldSamples(t *testing.T) {
	start := time.Now()
	r := newRecentLookups(start)
	for i := range 100 {
		r.add(start.Add(time.Duration(i)*sampleInterval), protocol.General{})
	}
	if most := int(recentWindow/sampleInterval) + 1; len(r.samples) != most {
		t.Errorf("%d samples, want %d", len(r.samples), most)
	}
}

// In the first minute, counts begin at zero anyway.
func TestRecentLookupsAreNotNegativeAfterAReset(t *testing.T) {
	start := time.Now()
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	for name, now := range map[string]protocol.General{
		"lookups and hits": {Lookups: 30, Hits: 20},
		"hits alone":       {Lookups: 5000, Hits: 20},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecentLookups(start)
			for second := 10; second <= 200; second += 10 {
				r.add(at(second), protocol.General{Lookups: int64(10 * second), Hits: int64(9 * second)})
			}
			if lookups, hits := r.count(at(205), now); lookups != now.Lookups || hits != now.Hits {
				t.Errorf("%d lookups and %d hits, want %d and %d", lookups, hits, now.Lookups, now.Hits)
			}
		})
	}
}
