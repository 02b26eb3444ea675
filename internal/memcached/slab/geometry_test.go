package slab

import (
	"strings"
	"testing"
)

// test/facts compares the decision with memcached's own.
func TestDifferenceNamesTheOption(t *testing.T) {
	for name, c := range map[string]struct {
		to   string
		want string
	}{
		"equal":           {"-m 64 -t 9 -c 5", ""},
		"memory":          {"-m 65", "the memory limit (-m), which changed from 67108864 to 68157440"},
		"item size":       {"-I 2m", "the largest item (-I), which changed from 1048576 to 2097152"},
		"growth factor":   {"-f 1.5", "the slab sizes (-f or -o slab_sizes), which changed from 1.25 to 1.5"},
		"slab sizes":      {"-f 1.5 -o slab_sizes=1-2", "the slab sizes (-f or -o slab_sizes), which changed from 1.25 to 1-2"},
		"smallest item":   {"-n 9", "the smallest item (-n), which changed from 48 to 9"},
		"CAS":             {"-C", "CAS (-C), which changed from true to false"},
		"reassign":        {"-o no_slab_reassign", "slab reassignment (-o slab_reassign or no_modern), which changed from true to false"},
		"chunk max":       {"-o slab_chunk_max=256", "the largest chunk (-o slab_chunk_max, no_chunked_items or no_modern), which changed from 524288 to 262144"},
		"extstore":        {"-o ext_path=/x:1m", "extstore (-o ext_path), with which memcached keeps no items across a restart"},
		"two differences": {"-m 65 -n 9", "the memory limit (-m), which changed from 67108864 to 68157440"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := Of(nil, "1.6.45"), Of(strings.Fields(c.to), "1.6.45")
			if got := from.Difference(to); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLargestChunkIsInTheUnitOfTheVersion(t *testing.T) {
	older, newer := Of([]string{"-o", "slab_chunk_max=262144"}, "1.6.18"), Of([]string{"-o", "slab_chunk_max=256"}, "1.6.45")
	if got := older.Difference(newer); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestVersionIsBefore(t *testing.T) {
	for version, want := range map[string]bool{
		"1.6.18": true, "1.6.23": true, "1.6.24": false, "1.6.45": false, "1.5.99": true, "1.10.0": false, "2.0.0": false, "1.6.24-rc1": false,
	} {
		if got := IsBefore(version, 1, 6, 24); got != want {
			t.Errorf("%s is before 1.6.24: %v", version, got)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("-m", "64", "-vvC")
	f.Add("--memory-limit=64", "-o", "slab_sizes=1-2,no_modern")
	f.Add("--", "-I1m", "-")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		words := []string{a, b, c}
		g := Of(words, "1.6.45")
		if !g.Extstore && g.Difference(g) != "" {
			t.Errorf("%q differs from itself: %s", words, g.Difference(g))
		}
	})
}

// test/facts compares the number with memcached's own.
func TestClassesAreCounted(t *testing.T) {
	for options, want := range map[string]int{
		"": 39, "-I 2m": 39, "-f 1.05": 63, "-f 1": 63, "-f x": 63, "-o slab_sizes=100-200-400-1000": 5, "-o slab_sizes=512": 2, "-o slab_sizes=1024-2048": 3,
	} {
		if got := Of(strings.Fields(options), "").Classes(); got != want {
			t.Errorf("%q: %d classes, want %d", options, got, want)
		}
	}
}
