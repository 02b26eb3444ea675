package main

import (
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

func TestWhatMemcachedCountedLately(t *testing.T) {
	type count struct {
		second        int
		lookups, hits int64
	}
	// every is a memcached that counts 10 lookups and 9 hits a second.
	every := func(seconds ...int) []count {
		var counts []count
		for _, s := range seconds {
			counts = append(counts, count{s, int64(10 * s), int64(9 * s)})
		}
		return counts
	}
	for name, c := range map[string]struct {
		taken         []count
		now           count
		lookups, hits int64
	}{
		"right after the start":                      {nil, count{0, 3, 2}, 3, 2},
		"before the first sample":                    {nil, count{7, 70, 63}, 70, 63},
		"within the first minute":                    {every(10, 20, 30), count{33, 330, 297}, 330, 297},
		"after just a minute":                        {every(10, 20, 30, 40, 50, 60), count{60, 600, 540}, 600, 540},
		"later":                                      {every(10, 20, 30, 40, 50, 60, 70, 80), count{85, 850, 765}, 550, 495},
		"much later":                                 {every(1000, 1010, 1020, 1030, 1040, 1050, 1060), count{1060, 10600, 9540}, 600, 540},
		"when nobody asks it for anything":           {[]count{{10, 50, 5}, {20, 50, 5}, {80, 50, 5}}, count{90, 50, 5}, 0, 0},
		"when it gave no answers for minutes":        {every(10, 20), count{300, 3000, 2700}, 2800, 2520},
		"after its counters were set back":           {[]count{{10, 100, 90}, {20, 30, 20}, {30, 130, 110}}, count{35, 180, 155}, 180, 155},
		"after they were set back since the last":    {every(10, 20), count{25, 30, 20}, 30, 20},
		"after they were, and hits alone tell of it": {[]count{{10, 100, 90}}, count{15, 120, 20}, 120, 20},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			general := func(c count) (time.Time, memcache.General) {
				return start.Add(time.Duration(c.second) * time.Second), memcache.General{Lookups: c.lookups, Hits: c.hits}
			}
			r := newRecent(start)
			for _, c := range c.taken {
				r.take(general(c))
			}
			if lookups, hits := r.until(general(c.now)); lookups != c.lookups || hits != c.hits {
				t.Errorf("%d lookups and %d hits, want %d and %d", lookups, hits, c.lookups, c.hits)
			}
		})
	}
}

func TestFewSamplesAreKept(t *testing.T) {
	start := time.Now()
	r := newRecent(start)
	for i := range 100 {
		r.take(start.Add(time.Duration(i)*sampleInterval), memcache.General{})
	}
	if most := int(recentWindow/sampleInterval) + 1; len(r.samples) != most {
		t.Errorf("%d samples, want %d", len(r.samples), most)
	}
}
