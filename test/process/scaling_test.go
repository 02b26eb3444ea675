package process

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// scaledCache is three shards, of which clients use the first two or all.
type scaledCache struct {
	t        *testing.T
	shards   []*pods.Shard
	names    []string
	two, all ring.Ring
	request  agentwire.Scaling
}

func newScaledCache(t *testing.T) *scaledCache {
	t.Helper()
	c := &scaledCache{t: t, names: []string{"a:11211", "b:11211", "c:11211"}}
	c.two, _ = ring.New(ring.Ketama, c.names[:2])
	c.all, _ = ring.New(ring.Ketama, c.names)
	key := filepath.Join(pods.SharedDir(t), "key")
	pods.WriteFile(t, key, string(bytes.Repeat([]byte{1}, 32)))
	for ordinal, name := range c.names {
		s := pods.NewShard(t)
		s.PodUID, s.Ordinal, s.ScalingKey, s.HandoverKey = name, ordinal, key, key
		s.Service = pods.NewService(t, s.AgentAddress()).Address()
		c.shards, c.request.Agents = append(c.shards, s), append(c.request.Agents, s.AgentAddress())
	}
	return c
}

// fill starts shards and fills them as clients with a ring do. It returns the keys that are on another shard with the other one.
func (c *scaledCache) fill(shards []*pods.Shard, by, other ring.Ring) (moved []string) {
	c.t.Helper()
	sets := make([]strings.Builder, len(shards))
	for i := range 3000 {
		name := fmt.Sprintf("key-%d", i)
		of := by.Shard([]byte(name))
		fmt.Fprintf(&sets[of], "ms %s 4 q\r\nheld\r\n", name)
		if other.Shard([]byte(name)) != of {
			moved = append(moved, name)
		}
	}
	for ordinal, s := range shards {
		s.Run()
		pods.Talk(c.t, s.Address(), sets[ordinal].String())
	}
	return moved
}

// annotate requests a step of a shard.
func (c *scaledCache) annotate(s *pods.Shard, step agentwire.ScalingStep) {
	c.t.Helper()
	c.request.Ordinal, c.request.Step = s.Ordinal, step
	s.Annotate(agentwire.ScalingFile, c.request.String())
}

// reach requests a step of shards and waits until they have completed it.
func (c *scaledCache) reach(step agentwire.ScalingStep, shards ...*pods.Shard) (sum agentwire.ScalingStatus) {
	c.t.Helper()
	for _, s := range shards {
		c.annotate(s, step)
	}
	for _, s := range shards {
		of := *s.WaitFor(string(step), func(status agentwire.Status) bool { return status.Scaling != nil && status.Scaling.Step == step }).Scaling
		sum.Moved, sum.Purged = sum.Moved+of.Moved, sum.Purged+of.Purged
	}
	return sum
}

// want fails unless shards have, or lack, the items of keys.
func (c *scaledCache) want(keys []string, has bool, of ring.Ring) {
	c.t.Helper()
	gets := make([]strings.Builder, len(c.shards))
	for _, key := range keys {
		fmt.Fprintf(&gets[of.Shard([]byte(key))], "mg %s v q\r\n", key)
	}
	got := 0
	for ordinal := range gets {
		if gets[ordinal].Len() > 0 {
			got += strings.Count(pods.Talk(c.t, c.shards[ordinal].Address(), gets[ordinal].String()), "VA ")
		}
	}
	if has && got != len(keys) || !has && got != 0 {
		c.t.Errorf("%d of %d items are there, want them: %t", got, len(keys), has)
	}
}

// A new shard isn't ready before it has the items that its clients will look for. What clients of the old list change then is changed in the
// new shard too, and at the end the former owners have none of its keys. A restart afterwards finds nothing to compare, and keeps
// all items.
func TestNewShardServesWithTheItemsOfItsKeys(t *testing.T) {
	t.Parallel()
	c := newScaledCache(t)
	moved := c.fill(c.shards[:2], c.two, c.all)
	c.request.ID, c.request.Ring, c.request.From, c.request.To = "2-3-1", ring.Ketama, c.names[:2], c.names
	added := c.shards[2]
	c.annotate(added, agentwire.ScalingCopy)
	added.Launch()
	if s := c.reach(agentwire.ScalingCopy, added); s.Moved != int64(len(moved)) || added.Status().Phase != agentwire.PhaseReceiving || pods.IsReady(t.Context(), added) {
		t.Errorf("with %d items to move: %+v, phase %s", len(moved), s, added.Status().Phase)
	}
	c.reach(agentwire.ScalingPublished, added)
	pods.WaitReady(t, added)
	c.want(moved, true, c.all)
	pods.Talk(t, c.shards[c.two.Shard([]byte(moved[0]))].Address(), fmt.Sprintf("ms %s 4\r\nnext\r\n", moved[0]))
	if !pods.Eventually(func() bool { return strings.Contains(pods.Talk(t, added.Address(), "mg "+moved[0]+" v\r\n"), "next") }) {
		t.Error("the new owner doesn't get what clients write in the old one")
	}
	if s := c.reach(agentwire.ScalingClose, added); s.Purged != int64(len(moved)) {
		t.Errorf("the old owners have deleted %d of %d items", s.Purged, len(moved))
	}
	c.want(moved, true, c.all)
	c.want(moved, false, c.two)
	added.StopContainer()
	added.Annotate(agentwire.StopFile, "")
	pods.WantWarm(t, added.Run(), int64(len(moved)))
	c.reach(agentwire.ScalingClose, added)
	c.want(moved, true, c.all)
}

// Unless clients use the declared ring, a new shard serves at once, without items, and says why. At the close, it deletes what it has of the
// keys that were to move.
func TestNewShardServesWithoutItemsIfTheRingIsAnother(t *testing.T) {
	t.Parallel()
	c := newScaledCache(t)
	moved := c.fill(c.shards[:2], c.two, c.all)
	c.request.ID, c.request.Ring, c.request.From, c.request.To = "2-3-1", ring.Rendezvous, c.names[:2], c.names
	added := c.shards[2]
	c.annotate(added, agentwire.ScalingCopy)
	if s := added.Run(); !strings.Contains(s.Scaling.Problem, "keys of shard") || s.Items != 0 {
		t.Errorf("%d items, %+v", s.Items, s.Scaling)
	}
	c.want(moved, true, c.two)
	declared, _ := ring.New(ring.Rendezvous, c.names)
	kept := slices.DeleteFunc(slices.Clone(moved), func(key string) bool { return declared.Shard([]byte(key)) == added.Ordinal })
	pods.Talk(t, added.Address(), "ms "+strings.Join(moved, " 4 q\r\nheld\r\nms ")+" 4 q\r\nheld\r\n")
	c.reach(agentwire.ScalingClose, added)
	c.want(kept, true, c.all)
	if got := strings.Count(pods.Talk(t, added.Address(), "mg "+strings.Join(moved, " v q\r\nmg ")+" v q\r\n"), "VA "); got != len(kept) {
		t.Errorf("%d of %d items are left, want %d", got, len(moved), len(kept))
	}
}

// A scaling without a move of items has left copies of a few keys. A dry run counts them, and a purge deletes them.
func TestPurgeDeletesWhatAnEarlierScalingHasLeft(t *testing.T) {
	t.Parallel()
	c := newScaledCache(t)
	moved := c.fill(c.shards, c.all, c.two)
	orphans := moved[:10] // less than 1% of each shard
	for _, key := range orphans {
		pods.Talk(t, c.shards[c.two.Shard([]byte(key))].Address(), fmt.Sprintf("ms %s 3\r\nold\r\n", key))
	}
	c.request.Ring, c.request.From, c.request.To = ring.Ketama, c.names, c.names
	for _, step := range []agentwire.ScalingStep{agentwire.ScalingCount, agentwire.ScalingPurge} {
		c.want(orphans, true, c.two)
		c.request.ID = string(step)
		if s := c.reach(step, c.shards...); s.Purged != int64(len(orphans)) {
			t.Errorf("%s: %d of %d items", step, s.Purged, len(orphans))
		}
	}
	c.want(orphans, false, c.two)
	c.want(moved, true, c.all)
}
