package screen

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestDeviatingSiblings(t *testing.T) {
	nan := math.NaN()
	same := func(values ...float64) [][]float64 { return [][]float64{values, values, values} }
	for name, c := range map[string]struct {
		windows [][]float64
		want    []float64
	}{
		"one of three":                        {same(100, 104, 300), []float64{0, 0, 300./104 - 1}},
		"one has less":                        {same(0.9, 0.88, 0.92, 0.45), []float64{0, 0, 0, 0.45/0.89 - 1}},
		"equal siblings have no spread":       {same(100, 100, 100, 130), []float64{0, 0, 0, 130./100 - 1}},
		"equal siblings, and less than 20%":   {same(100, 100, 100, 119), []float64{0, 0, 0, 0}},
		"more than 20%, but not five spreads": {same(100, 150, 250), []float64{0, 0, 0}},
		"five spreads, but less than 20%":     {same(100, 101, 119), []float64{0, 0, 0}},
		"two shards":                          {same(100, 900), []float64{0, 0}},
		"one shard":                           {same(100), []float64{0}},
		"one isn't known":                     {same(100, nan, 101, 300), []float64{0, 0, 0, 300./101 - 1}},
		"none is known":                       {same(nan, nan, nan), []float64{0, 0, 0}},
		"no median":                           {same(0, 0, 0, 5), []float64{0, 0, 0, 0}},
		"two windows":                         {same(100, 100, 300)[:2], []float64{0, 0, 0}},
		"not in the middle one":               {[][]float64{{100, 100, 300}, {100, 100, 100}, {100, 100, 300}}, []float64{0, 0, 0}},
		"not in the last one":                 {[][]float64{{100, 100, 300}, {100, 100, 300}, {100, 100, 100}}, []float64{0, 0, 0}},
		"not in the first one":                {[][]float64{{100, 100, 100}, {100, 100, 300}, {100, 100, 300}}, []float64{0, 0, 0}},
		"an older window doesn't count":       {append([][]float64{{1, 1, 1}}, same(100, 100, 300)...), []float64{0, 0, 2}},
		"no window":                           {nil, nil},
	} {
		if got := Deviating(c.windows); !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestLinesOfTopDoNotWrap(t *testing.T) {
	top := NewTop([]Place{{"team", "cache", "cache-0", "cache-0-a"}}, nil, false, 1, nil)
	wide := top.Text()
	if top.Width = 9; top.Text() != "SHARD    \ncache-0  \n1 Memcached is not shown: name a namespace with -n, or raise --limit\n" {
		t.Errorf("got %q", top.Text())
	}
	if top.Width = strings.Index(wide, "\n"); top.Text() != wide {
		t.Errorf("got %q", top.Text())
	}
}
