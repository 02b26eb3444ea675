// Package size compares the memory that the agent recommends with what a simulated cache needs.
package size

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/sizing"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
)

//go:embed size.md
var template string

// Benchmark simulates weeks of caches in fast motion, without a cluster.
var Benchmark = report.Benchmark{Name: "size", Summary: "whether the recommended memory is what a cache needs, by simulation", Template: template, Flags: func(flags *flag.FlagSet) report.Measure {
	seeds := flags.Int("seeds", 12, "caches of each kind")
	first := flags.Int("first", 101, "the first seed: the constants of package sizing were chosen with 1 to 6")
	return func(_ context.Context, r *report.Run) (report.Result, error) { return measure(r, *first, *seeds) }
}}

const (
	// chunk is the size of an item, places how many the agent samples.
	chunk  = 1 << 20
	places = 4096
	week   = 7 * day
	// kept is the share of the hits for which the needed memory is the least.
	kept = 0.99
	// near is how far from that a recommendation may be.
	near = 0.25
	// atMost bounds how often a cache grows.
	atMost = 10
)

// outcome is what a cache came to. Sizes are relative to the needed memory.
type outcome struct {
	kind, seed, steps       int
	start, recommended, day float64
	lost                    float64 // of the hits, with the recommended memory
	reason                  sizing.Reason
}

// play runs a cache of a random size for two weeks, and follows recommendations of more memory for a week each.
func play(kind int, seed uint64) outcome {
	l, s := newLoad(kind, seed), (*stack)(nil)
	s = newStack(l.all)
	for now := int32(0); now < 2*week; now += minute {
		s.minute(l, now, now >= week)
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(kinds)+kind))) //nolint:gosec // runs are repeatable
	memory := int(float64(s.needed()) * 0.6 * math.Exp(random.Float64()*math.Log(4/0.6)))
	o := outcome{kind: kind, seed: int(seed), start: float64(memory) / float64(s.needed())}
	l = newLoad(kind, seed)
	s = newStack(l.all)
	c := newCache(memory, l.all)
	var windows sizing.Windows
	var items []sizing.Item
	interval := int32(5 * minute)
	if l.ttl > 0 {
		interval = minute
	}
	for weeks := 1; weeks <= atMost; weeks++ {
		clear(s.hits)
		s.total = 0
		for now := int32(weeks-1) * week; now < int32(weeks)*week; now += minute {
			for _, key := range s.minute(l, now, true) {
				c.request(key, now, l.ttl)
			}
			c.juggle(now)
			if now%interval > 0 {
				continue
			}
			if l.ttl > 0 {
				c.crawl(now)
			}
			age := math.NaN()
			if now-c.evictedAt < 5*minute {
				age = c.age
			}
			items = c.sample(now, places, random, items[:0])
			windows.Add(sizing.Reading{At: time.Unix(1e9+int64(now), 0), Next: time.Duration(interval) * time.Second,
				Memory: int64(memory) * chunk, EvictionAge: age, Counters: c.counters, Items: items})
		}
		if weeks == 1 {
			continue
		}
		r := windows.Report()
		needed := float64(s.needed())
		o.recommended, o.day, o.reason = float64(r.Bytes)/chunk/needed, r.Used[3]*1.25/chunk/needed, r.Reason
		o.lost = s.lost(int(r.Bytes / chunk))
		if r.Bytes <= int64(memory)*chunk {
			return o
		}
		memory = int(r.Bytes / chunk)
		c.resize(memory)
		o.steps++
	}
	return o
}

func measure(r *report.Run, first, seeds int) (report.Result, error) {
	outcomes := make([]outcome, len(kinds)*seeds)
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i := range outcomes {
		wait.Go(func() {
			slots <- struct{}{}
			outcomes[i] = play(i/seeds, uint64(first+i%seeds))
			<-slots
			r.Say("%s, seed %d: started with %.2f of the needed memory, recommended %.2f after %d steps (%s), which loses %.2f%% of the hits",
				kinds[outcomes[i].kind], outcomes[i].seed, outcomes[i].start, outcomes[i].recommended, outcomes[i].steps, outcomes[i].reason, 100*outcomes[i].lost)
		})
	}
	wait.Wait()
	table := report.Table{{"load", "runs", "recommended ÷ needed", "within 25%", "most hits lost", "steps up, at most", "bytes of a day × 1.25 ÷ needed"}}
	row := func(name string, of []outcome) (within, unsafe int) {
		steps, lost := 0, 0.0
		var recommended, simple []float64
		for _, o := range of {
			recommended, simple = append(recommended, o.recommended), append(simple, o.day)
			steps, lost = max(steps, o.steps), max(lost, o.lost)
			if math.Abs(o.recommended-1) <= near {
				within++
			}
			if o.lost > 1-kept {
				unsafe++
			}
		}
		spread := func(v []float64) string { return fmt.Sprintf("%.2f to %.2f", slices.Min(v), slices.Max(v)) }
		table = append(table, []string{name, fmt.Sprint(len(of)), spread(recommended), fmt.Sprint(within), report.Percent(lost, 2), fmt.Sprint(steps), spread(simple)})
		return within, unsafe
	}
	for kind, name := range kinds {
		row(name, outcomes[kind*seeds:(kind+1)*seeds])
	}
	within, unsafe := row("all", outcomes)
	result := report.Result{Tables: []report.Table{table}, Values: map[string]any{"Seeds": seeds, "First": first, "Last": first + seeds - 1}}
	line := func(name string, color int, value func(outcome) float64) report.Series {
		var all []float64
		for _, o := range outcomes {
			all = append(all, 100*value(o))
		}
		slices.Sort(all)
		s := report.Series{Name: name, Color: color}
		for i, v := range all {
			s.Points = append(s.Points, report.Point{X: float64(i + 1), Y: v})
		}
		return s
	}
	result.Chart = &report.Chart{Title: "Recommended memory", Subtitle: "relative to the least memory with 99% of the hits of an exact LRU, in simulated weeks",
		Panels: []report.Panel{{Title: "% of the needed memory", XLabel: "simulated caches, sorted", YTo: 280, Series: []report.Series{
			line("recommended", 0, func(o outcome) float64 { return o.recommended }),
			line("bytes used in a day × 1.25", 1, func(o outcome) float64 { return o.day }),
			line("at first", 3, func(o outcome) float64 { return min(o.start, 2.6) }),
		}}}}
	if within*10 < len(outcomes)*9 || unsafe > 0 {
		result.Missed = fmt.Errorf("%d of %d recommendations are within 25%% of the needed memory, and %d lose more than 1%% of the hits", within, len(outcomes), unsafe)
	}
	return result, nil
}
