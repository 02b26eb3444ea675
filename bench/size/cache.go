package size

import (
	"math"
	"math/rand/v2"

	"github.com/memcached-operator/memcached-operator/internal/agent/sizing"
)

// The queues of memcached's segmented LRU.
const (
	hot = iota
	warm
	cold
	queues
)

// The shares of a slab class for its HOT and WARM queue, and the ages at which items leave them relative to COLD: memcached's
// defaults.
const (
	hotShare, warmShare   = 0.2, 0.4
	hotFactor, warmFactor = 0.2, 2.0
	// juggled is how many items the maintainer moves in a queue each time.
	juggled = 500
)

type item struct {
	key             int32
	used, expires   int32 // in seconds
	fetched, active bool
	queue           int8
	previous, next  int32
}

// cache is one slab class of memcached: chunks of one size, the three queues, and what memcached records of reads in
// do_item_bump and lru_pull_tail of its items.c. It evicts the tail of COLD.
type cache struct {
	items      []item // by chunk, from 1 on; 0 is none
	free       []int32
	of         []int32 // the chunk of each key
	head, tail [queues]int32
	count      [queues]int
	counters   sizing.Counters
	misses     float64
	evictedAt  int32
	age        float64
}

func newCache(chunks, keys int) *cache {
	c := &cache{items: make([]item, chunks+1), of: make([]int32, keys), evictedAt: math.MinInt32 / 2}
	for i := chunks; i > 0; i-- {
		c.free = append(c.free, int32(i))
	}
	return c
}

// resize keeps the items that were used last, as a handover does.
func (c *cache) resize(chunks int) {
	old := *c
	*c = *newCache(chunks, len(c.of))
	c.counters, c.misses, c.evictedAt, c.age = old.counters, old.misses, old.evictedAt, old.age
	for _, queue := range []int8{hot, warm, cold} {
		for at := old.head[queue]; at != 0; at = old.items[at].next {
			i := old.items[at]
			if len(c.free) == 0 {
				break
			}
			c.link(i, queue, true)
		}
	}
}

func (c *cache) link(i item, queue int8, atTail bool) {
	at := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	i.queue, i.previous, i.next = queue, 0, 0
	c.items[at] = i
	c.of[i.key] = at
	c.enqueue(at, queue, atTail)
}

func (c *cache) enqueue(at int32, queue int8, atTail bool) {
	i := &c.items[at]
	i.queue, i.previous, i.next = queue, 0, 0
	if atTail {
		if i.previous = c.tail[queue]; i.previous != 0 {
			c.items[i.previous].next = at
		} else {
			c.head[queue] = at
		}
		c.tail[queue] = at
	} else {
		if i.next = c.head[queue]; i.next != 0 {
			c.items[i.next].previous = at
		} else {
			c.tail[queue] = at
		}
		c.head[queue] = at
	}
	c.count[queue]++
}

func (c *cache) dequeue(at int32) {
	i := &c.items[at]
	if i.previous != 0 {
		c.items[i.previous].next = i.next
	} else {
		c.head[i.queue] = i.next
	}
	if i.next != 0 {
		c.items[i.next].previous = i.previous
	} else {
		c.tail[i.queue] = i.previous
	}
	c.count[i.queue]--
}

func (c *cache) remove(at int32) {
	c.dequeue(at)
	c.of[c.items[at].key] = 0
	c.items[at] = item{}
	c.free = append(c.free, at)
}

// request reads a key, and stores it after a miss.
func (c *cache) request(key, now, ttl int32) {
	if at := c.of[key]; at != 0 {
		i := &c.items[at]
		if i.expires == 0 || i.expires > now {
			c.counters.Hits++
			c.bump(at, now)
			return
		}
		c.remove(at)
	}
	c.misses++
	c.counters.Stored++
	for tries := 0; len(c.free) == 0; tries++ {
		c.evict(now)
	}
	i := item{key: key, used: now}
	if ttl > 0 {
		i.expires = now + ttl
	}
	c.link(i, hot, false)
}

func (c *cache) bump(at, now int32) {
	i := &c.items[at]
	switch {
	case i.active:
	case !i.fetched:
		i.fetched = true
	default:
		i.used = now
		if i.queue == cold {
			c.dequeue(at)
			c.enqueue(at, warm, false)
		} else {
			i.active = true
		}
	}
}

func (c *cache) evict(now int32) {
	c.juggle(now)
	queue := cold
	if c.count[cold] == 0 {
		queue = hot
		if c.count[hot] == 0 {
			queue = warm
		}
	}
	at := c.tail[queue]
	i := &c.items[at]
	if i.expires == 0 || i.expires > now {
		c.counters.Evicted++
		if !i.fetched {
			c.counters.EvictedUnread++
		}
		c.age, c.evictedAt = float64(now-i.used), now
	}
	c.remove(at)
}

// juggle is memcached's LRU maintainer.
func (c *cache) juggle(now int32) {
	total := float64(c.count[hot] + c.count[warm] + c.count[cold])
	age := 0.0
	if at := c.tail[cold]; at != 0 {
		age = float64(now - c.items[at].used)
	}
	for range juggled {
		moved := c.pull(hot, hotShare*total, age*hotFactor, now)
		if !moved {
			moved = c.pull(warm, warmShare*total, age*warmFactor, now)
		}
		if !moved {
			return
		}
	}
}

func (c *cache) pull(queue int8, limit, age float64, now int32) bool {
	at := c.tail[queue]
	if at == 0 {
		return false
	}
	i := &c.items[at]
	switch {
	case i.expires != 0 && i.expires <= now:
		c.remove(at)
	case i.active:
		i.active = false
		c.dequeue(at)
		c.enqueue(at, warm, false)
	case float64(c.count[queue]) > limit || float64(now-i.used) > age:
		c.dequeue(at)
		c.enqueue(at, cold, false)
	default:
		return false
	}
	return true
}

// crawl removes expired items, as memcached's crawler does.
func (c *cache) crawl(now int32) {
	for at := 1; at < len(c.items); at++ {
		if i := &c.items[at]; i.key >= 0 && i.expires != 0 && i.expires <= now {
			c.remove(int32(at))
		}
	}
}

// sample reads one chunk in each of so many parts, as the agent does with the memory file.
func (c *cache) sample(now int32, places int, random *rand.Rand, to []sizing.Item) []sizing.Item {
	chunks := len(c.items) - 1
	stands := float64(chunks) / float64(places)
	for part := range places {
		from, end := part*chunks/places, (part+1)*chunks/places
		at := from + random.IntN(max(end-from, 1)) + 1
		i := &c.items[at]
		if c.of[i.key] != int32(at) || i.expires != 0 && i.expires <= now {
			continue
		}
		s := sizing.Item{Age: uint32(now - i.used), Fetched: i.fetched, Active: i.active, Bytes: stands * chunk, Count: stands}
		if i.expires != 0 {
			s.Left = uint32(i.expires - now)
		}
		to = append(to, s)
	}
	return to
}
