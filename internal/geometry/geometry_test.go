package geometry

import (
	"strings"
	"testing"
)

// What memcached itself refuses is asked of it in test/process; this is what the
// person is told.
func TestADifferenceNamesItsOption(t *testing.T) {
	for name, c := range map[string]struct {
		to   string
		want string
	}{
		"equal":           {"-m 64 -t 9 -c 5", ""},
		"memory":          {"-m 65", "the memory limit (-m), 67108864 before and now 68157440"},
		"item size":       {"-I 2m", "the largest item (-I), 1048576 before and now 2097152"},
		"growth factor":   {"-f 1.5", "the slab sizes (-f or -o slab_sizes), 1.25 before and now 1.5"},
		"slab sizes":      {"-f 1.5 -o slab_sizes=1-2", "the slab sizes (-f or -o slab_sizes), 1.25 before and now 1-2"},
		"smallest item":   {"-n 9", "the smallest item (-n), 48 before and now 9"},
		"CAS":             {"-C", "CAS (-C), true before and now false"},
		"reassign":        {"-o no_slab_reassign", "slab reassignment (-o slab_reassign or no_modern), true before and now false"},
		"chunk max":       {"-o slab_chunk_max=256", "the largest chunk (-o slab_chunk_max, no_chunked_items or no_modern), 524288 before and now 262144"},
		"extstore":        {"-o ext_path=/x:1m", "extstore (-o ext_path), with which memcached keeps no items over a restart"},
		"the first of it": {"-m 65 -n 9", "the memory limit (-m), 67108864 before and now 68157440"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := Of(nil, "1.6.45"), Of(strings.Fields(c.to), "1.6.45")
			if got := from.Difference(to); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOlder(t *testing.T) {
	for version, want := range map[string]bool{
		"1.6.18": true, "1.6.23": true, "1.6.24": false, "1.6.45": false, "1.5.99": true, "1.10.0": false, "2.0.0": false, "1.6.24-rc1": false,
	} {
		if got := older(version, 1, 6, 24); got != want {
			t.Errorf("%s is older than 1.6.24: %v", version, got)
		}
	}
}
