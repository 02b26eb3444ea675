package suite

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Failing is a change that must not get past the first shard.
type Failing struct {
	Spec   func() v1beta1.MemcachedSpec
	Reason string
	// Words of the message.
	Words []string
	// Tried: it is known only when it was tried on the first shard, and Restarts that
	// its container is restarted for it, there and back.
	Tried, Restarts bool
	// LosesItems of that shard, as nothing can be done about it.
	LosesItems bool
	// Fix repairs it; the former spec is applied when it is nil.
	Fix func(*Space, string)
}

// Fails applies a change that fails to two shards that contain items, and fixes it.
func (s *Space) Fails(name string, size int, change Failing) {
	s.Helper()
	s.Serve(name, Small(2))
	first, second := s.Written(name, 0, size), s.Written(name, 1, size)
	before := s.Lives(name)
	h := s.Follow(name)
	s.Apply(name, change.Spec())
	m, sentence := s.Degraded(name, change.Reason)
	s.Log(sentence)
	for _, word := range change.Words {
		if word = strings.ReplaceAll(word, "shard -", "shard "+name+"-"); !strings.Contains(sentence, word) {
			s.Errorf("the message does not contain %q", word)
		}
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionProgressing); c.Reason == v1beta1.ReasonUpdatingShard {
		s.Errorf("Progressing is %s: %s", c.Reason, c.Message)
	}
	lives := before
	if change.Tried {
		shard := cluster.ShardName(name, 0)
		s.Event(name, v1beta1.EventShardRolledBack, shard)
		lives = s.rolledBack(name, shard, before, change.Restarts)
	}
	s.Await(name, "all shards serve", func(m *v1beta1.Memcached) error {
		if m.Status.ReadyShards != 2 || m.Status.Phase != v1beta1.PhaseBlocked {
			return fmt.Errorf("%d do, phase %s", m.Status.ReadyShards, m.Status.Phase)
		}
		// The agent reports the start a moment after the kubelet reports a ready pod.
		if start := s.Shard(m, 0).StartResult; change.Restarts && !change.LosesItems && start != v1beta1.StartWarm {
			return fmt.Errorf("the shard that was rolled back is %s", start)
		}
		return nil
	})
	s.Event(name, change.Reason)
	s.Untouched(name, lives)
	s.Holds(second)
	if !change.LosesItems {
		s.Address(name, 0) // answers again
		s.Holds(first)
	}
	all := h.End()
	h.NeverTwo(all)
	for _, out := range all.Outages() {
		s.Logf("%s was unavailable for %s", out.Shard, out.Took.Round(10*time.Millisecond))
		if out.Shard != cluster.ShardName(name, 0) || !change.Tried {
			s.Errorf("%s was unavailable for %s", out.Shard, out.Took)
		}
	}
	if !change.Tried && all.Changed() != nil {
		s.Errorf("shards %v were changed", all.Changed())
	}

	if change.Fix != nil {
		change.Fix(s, name)
		s.Updated(name)
	} else {
		s.Apply(name, Small(2))
		s.Updated(name)
		s.Untouched(name, lives)
	}
	s.Event(name, v1beta1.ReasonAsExpected)
	s.Address(name, 1) // answers again
	s.Holds(second)
}

// rolledBack waits until a shard is in the same pod what it was before, and returns
// the lives of all. A container that crashes may be started more than once.
func (s *Space) rolledBack(name, shard string, before map[string]cluster.Life, restarts bool) map[string]cluster.Life {
	s.Helper()
	was := before[shard]
	lives := maps.Clone(before)
	s.Eventually("shard "+shard+" is rolled back", func(context.Context) error {
		pod := s.Pods(name)[shard]
		now, image := cluster.LifeOf(pod), pod.Status.ContainerStatuses[0].Image
		if now.Pod != was.Pod || !IsReady(pod) || restarts && now.Restarts < was.Restarts+2 || !restarts && now != was || image != "docker.io/library/memcached:"+DefaultVersion {
			return fmt.Errorf("it was %+v and is %+v, ready %t, with image %s", was, now, IsReady(pod), image)
		}
		lives[shard] = now
		return nil
	})
	return lives
}
