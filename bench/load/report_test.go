package load

import (
	"math"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func span(from, until float64) Span { return Span{at(from), at(until)} }

// steady returns a report of two shards with 100 gets per bucket each. All are hits unless change changes them.
func steady(buckets int, change func(shard, bucket int, c *Counts)) Report {
	r := Report{Began: noon, Every: Every, Shards: make([][]Counts, 2)}
	for shard := range r.Shards {
		for bucket := range buckets {
			c := Counts{Gets: 100, Hits: 100}
			if change != nil {
				change(shard, bucket, &c)
			}
			r.Shards[shard] = append(r.Shards[shard], c)
		}
	}
	return r
}

func TestHitsLostAreThoseOfTheRatioBefore(t *testing.T) {
	for name, c := range map[string]struct {
		change        func(shard, bucket int, c *Counts)
		hits, seconds float64
	}{
		"no change": {nil, 0, 0},
		"one of two shards is unavailable for 2 s": {func(shard, bucket int, c *Counts) {
			if shard == 1 && bucket >= 24 && bucket < 28 {
				c.Hits, c.Errors = 0, 100
			}
		}, 400, 1},
		"as many misses as before": {func(_, _ int, c *Counts) { c.Hits, c.Misses = 90, 10 }, 0, 0},
		"no hits, and half of the gets hit before": {func(_, bucket int, c *Counts) {
			if c.Hits = 50; bucket >= 20 {
				c.Hits = 0
			}
		}, 2000, 10},
	} {
		loss := steady(40, c.change).Loss(span(0, 10), span(10, 20))
		if math.Abs(loss.Hits-c.hits)+math.Abs(loss.Seconds-c.seconds) > 1e-9 {
			t.Errorf("%s: %+v, want %v hits in %v s", name, loss, c.hits, c.seconds)
		}
	}
}

func TestSpanContainsTheBucketsThatBeginInIt(t *testing.T) {
	r := steady(10, func(_, bucket int, c *Counts) { c.Gets = 1 << bucket })
	for name, c := range map[string]struct {
		span Span
		gets int
	}{
		"Whole":       {span(0, 5), 2 * (1<<10 - 1)},
		"OneBucket":   {span(1, 1.5), 2 * (1 << 2)},
		"NotTheFirst": {span(0.1, 1), 2 * (1 << 1)},
		"BeyondEnds":  {span(-3, 99), 2 * (1<<10 - 1)},
		"Nothing":     {span(2, 2), 0},
		"Backwards":   {span(3, 2), 0},
		"AllBefore":   {span(-3, -1), 0},
		"AllAfter":    {span(30, 40), 0},
	} {
		if got := r.Sum(c.span).Gets; got != c.gets {
			t.Errorf("%s: %d gets, want %d", name, got, c.gets)
		}
	}
}

func TestHitRatioIsBackWhenACompleteWindowHasIt(t *testing.T) {
	r := steady(40, func(_, bucket int, c *Counts) {
		if bucket == 22 || bucket == 30 {
			c.Hits = 0
		}
	})
	for name, c := range map[string]struct {
		reason string
		since  float64
		back   float64
		never  bool
	}{
		"AfterTheDips":   {"the second dip is within the window of all that come before it", 10, 15.5, false},
		"Undisturbed":    {"a window that ends before the dip is complete", 5, 5, false},
		"NotOverYet":     {"the buckets that are left do not fill a window", 18, 0, true},
		"RightAfterADip": {"what came before does not matter", 15.5, 15.5, false},
	} {
		got, ok := r.Back(at(c.since), 0.99, 4*time.Second)
		if ok == c.never || ok && !got.Equal(at(c.back)) {
			t.Errorf("%s: %s: back at %v, %t", name, c.reason, got.Sub(noon), ok)
		}
	}
}

func TestSilencesAreTheLongestOfEachShard(t *testing.T) {
	r := steady(20, func(shard, bucket int, c *Counts) {
		c.Silence = time.Duration(shard*100+bucket) * time.Millisecond
	})
	got := r.Silences(span(1, 5))
	if len(got) != 2 || got[0] != 9*time.Millisecond || got[1] != 109*time.Millisecond {
		t.Errorf("silences are %v", got)
	}
}

func TestLatencyIsThatOfAShareOfTheOperations(t *testing.T) {
	r := steady(20, func(shard, bucket int, c *Counts) { c.Latencies = []time.Duration{time.Duration(2*bucket + shard + 1)} })
	for share, want := range map[float64]time.Duration{0.01: 5, 0.5: 8, 0.75: 10, 0.99: 12, 1: 12} {
		if got := r.Latency(span(1, 3), share); got != want {
			t.Errorf("the latency of a share of %v of 8 operations from 5 to 12 is %d, want %d", share, got, want)
		}
	}
	if got := r.Latency(span(2, 2), 0.99); got != 0 {
		t.Errorf("the latency of no operation is %s", got)
	}
}

func TestCurrentSilenceIsReported(t *testing.T) {
	r := newRecorder(noon)
	r.record(operation{kind: get, due: at(1)}, hit, at(1))
	r.record(operation{kind: get, due: at(2)}, failed, at(2.5))
	buckets := r.counted(at(4))
	if len(buckets) != 9 || buckets[8].Silence != 3*time.Second {
		t.Errorf("of 4 s, the last 3 without an answer, there are %d buckets, the last %v", len(buckets), buckets[len(buckets)-1].Silence)
	}
	r.record(operation{kind: get, due: at(4.9)}, miss, at(5))
	buckets = r.counted(at(5))
	if buckets[10].Silence != 4*time.Second || buckets[8].Silence != 0 {
		t.Errorf("a silence belongs to the bucket in which it ends: %v, %v", buckets[8].Silence, buckets[10].Silence)
	}
	if c := buckets[4]; c.Gets != 1 || c.Errors != 1 || c.Hits+c.Misses != 0 {
		t.Errorf("a get that failed is counted where it was due: %+v", c)
	}
}
