package main

import (
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

// Within the first minute all is counted from the start, which counts nothing.
func TestCountsThatWereSetBackAfterTheFirstMinuteAreNotNegative(t *testing.T) {
	start := time.Now()
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	for name, now := range map[string]memcache.General{
		"lookups and hits": {Lookups: 30, Hits: 20},
		"hits alone":       {Lookups: 5000, Hits: 20},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecent(start)
			for second := 10; second <= 200; second += 10 {
				r.take(at(second), memcache.General{Lookups: int64(10 * second), Hits: int64(9 * second)})
			}
			if lookups, hits := r.until(at(205), now); lookups != now.Lookups || hits != now.Hits {
				t.Errorf("%d lookups and %d hits, want %d and %d", lookups, hits, now.Lookups, now.Hits)
			}
		})
	}
}
