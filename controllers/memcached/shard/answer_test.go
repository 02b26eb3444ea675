package shard

import (
	"math"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/testnumbers"
)

// A counter that is increased by a negative number ends the operator. Sums over all shards of a
// Memcached must not overflow either.
func TestNumbersOfAnAnswerAreBounded(t *testing.T) {
	const shards = 128
	for name, c := range map[string]struct {
		integer int64
		float   float64
		valid   func(n float64) bool
	}{
		"the lowest":  {math.MinInt64, -math.MaxFloat64, func(n float64) bool { return n == 0 }},
		"negative":    {-5, -0.5, func(n float64) bool { return n == 0 }},
		"usual":       {1200, 1.5, func(n float64) bool { return n == 1200 || n == 1.5 }},
		"the highest": {math.MaxInt64, math.MaxFloat64, func(n float64) bool { return n > 0 && n*shards < math.MaxInt64 }},
	} {
		t.Run(name, func(t *testing.T) {
			var answer agentwire.Status
			if n := testnumbers.Set(&answer, c.integer, c.float); n < 20 {
				t.Fatalf("the answer has %d numbers", n)
			}
			handover, secrets := *answer.Handover, *answer.Secrets
			got := Bounded(answer)
			testnumbers.Each(&got, func(name string, n float64) {
				if !c.valid(n) {
					t.Errorf("%s is %v", name, n)
				}
			})
			if s := got.Start.UnavailableSeconds; s*1e9*shards > math.MaxInt64 {
				t.Errorf("%v seconds of each shard are no time.Duration", s)
			}
			if *answer.Handover != handover || *answer.Secrets != secrets {
				t.Error("the answer itself was changed")
			}
		})
	}
}
