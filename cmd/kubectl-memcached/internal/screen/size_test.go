package screen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// sized returns the screen of a Memcached whose shards have these metrics.
func sized(metrics ...string) Input {
	m := &v1beta1.Memcached{}
	m.Namespace, m.Name, m.Spec.Memory = "shop", "cache", new(resource.MustParse("64Mi"))
	in := Input{Memcached: m, Flags: "-n shop", Samples: map[string]Sample{}}
	for i, text := range metrics {
		name := "cache-" + string(rune('0'+i))
		m.Status.Shards = append(m.Status.Shards, v1beta1.ShardStatus{Name: name, PodName: name})
		if text != "" {
			in.Samples[name] = NewSample(text, time.Time{})
		}
	}
	return in
}

func TestSizeIsThatOfTheShardThatNeedsMost(t *testing.T) {
	const (
		unused  = "memcached_agent_recommended_memory_bytes{reason=\"Unused\"} 33554432\nmemcached_agent_used_memory_bytes{window=\"1h\"} 1048576\n"
		less    = "memcached_agent_recommended_memory_bytes{reason=\"Unused\"} 44040000\nmemcached_agent_used_memory_bytes{window=\"1h\"} 2097152\n"
		enough  = "memcached_agent_recommended_memory_bytes{reason=\"Enough\"} 67108864\n"
		early   = "memcached_agent_recommended_memory_bytes{reason=\"EvictedEarly\"} 83886080\n"
		observe = "memcached_agent_recommendation_absent{reason=\"Observing\"} 1\nmemcached_agent_recommendation_observed_seconds 90000\n"
		cold    = "memcached_agent_recommendation_absent{reason=\"ColdStart\"} 1\n"
		later   = "memcached_agent_recommendation_absent{reason=\"Dreaming\"} 1\n"
		older   = "memcached_up 1\n"
	)
	bytes := func(reason string, mebibytes int) string {
		return fmt.Sprintf("memcached_agent_recommended_memory_bytes{reason=%q} %d\n", reason, mebibytes<<20)
	}
	for name, c := range map[string]struct {
		shards  []string
		says    string
		command string
	}{
		"all need less":             {[]string{unused, less}, "42Mi instead of 64Mi a shard, 84Mi instead of 128Mi in all: the items that clients use need less memory", `"42Mi"`},
		"one needs all of it":       {[]string{unused, enough}, "the memory is enough", ""},
		"one needs more":            {[]string{unused, early}, "80Mi instead of 64Mi a shard, 160Mi instead of 128Mi in all: memcached evicts items that clients would read again", `"80Mi"`},
		"the spec has less already": {[]string{bytes("Enough", 128)}, `no recommendation: not all shards have spec.memory yet; "kubectl memcached why cache -n shop" says`, ""},
		"the spec has more already": {[]string{bytes("EvictedEarly", 50)}, "not all shards have spec.memory yet", ""},
		"the spec has that already": {[]string{bytes("WritesRefused", 64)}, "not all shards have spec.memory yet", ""},
		"the spec has too little":   {[]string{bytes("Unused", 70)}, "not all shards have spec.memory yet", ""},
		"one isn't known":           {[]string{unused, observe}, "cache-1: no recommendation: the agent has not observed seven days with this memory yet, but 25h", ""},
		"one isn't, one needs more": {[]string{observe, early}, "80Mi instead of 64Mi", `"80Mi"`},
		"one has just started":      {[]string{unused, cold}, "cache-1: no recommendation: the shard started without its items less than an hour ago", ""},
		"a reason that comes later": {[]string{later}, "cache-0: Dreaming", ""},
		"an agent without it":       {[]string{older}, "its agent doesn't have this metric", ""},
		"an agent without answer":   {[]string{unused, ""}, "cache-1: no recommendation: its agent did not answer", ""},
		"no shard":                  {nil, "there is no shard", ""},
	} {
		in := sized(c.shards...)
		s := NewSize(in)
		if !strings.Contains(s.Sentence, c.says) || !strings.Contains(s.Command, c.command) || (s.Command == "") != (c.command == "") {
			t.Errorf("%s: got %q and %q", name, s.Sentence, s.Command)
		}
		if line := NewStatus(in).Recommendation; (line != "") != (c.command != "") {
			t.Errorf("%s: the status has %q", name, line)
		}
	}
	want := `SHARD    MEMORY  RECOMMENDED  USED IN 1H  IN 1D  IN 7D  WHY
cache-0  64Mi    32Mi         1Mi         -      -      the items that clients use need less memory
cache-1  64Mi    42Mi         2Mi         -      -      the items that clients use need less memory
sum      128Mi   74Mi         3Mi         -      -      

Recommendation: 42Mi instead of 64Mi a shard, 84Mi instead of 128Mi in all: the items that clients use need less memory
Apply it: kubectl -n shop patch memcached cache --type=merge -p '{"spec":{"memory":"42Mi"}}'
`
	if diff := cmp.Diff(want, NewSize(sized(unused, less)).Text()); diff != "" {
		t.Error(diff)
	}
}
