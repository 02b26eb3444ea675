package memcached

import (
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

func TestWhichShardWasChangedLast(t *testing.T) {
	changed := func(name string, at int64, class rollout.Class) shard {
		return shard{Shard: rollout.Shard{Name: name}, step: &step{At: time.Unix(at, 0), Class: class}}
	}
	never := shard{Shard: rollout.Shard{Name: "never"}}
	for name, c := range map[string]struct {
		shards []shard
		want   string
	}{
		"none is there":                     {nil, ""},
		"none was changed":                  {[]shard{never, never}, ""},
		"one was":                           {[]shard{never, changed("a", 5, rollout.Restart), never}, "a"},
		"in the order of their ordinals":    {[]shard{changed("a", 5, rollout.Restart), changed("b", 7, rollout.Replace)}, "b"},
		"in another one":                    {[]shard{changed("a", 9, rollout.Recreate), changed("b", 7, rollout.Replace), changed("c", 8, rollout.Restart)}, "a"},
		"a change that nobody felt is none": {[]shard{changed("a", 5, rollout.Restart), changed("b", 7, rollout.Live)}, "a"},
		"and where it is the only one, too": {[]shard{changed("b", 7, rollout.Live)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if last := lastChanged(c.shards); last != nil {
				got = last.Name
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
