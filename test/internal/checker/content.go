package checker

import (
	"fmt"
	"hash/maphash"
	"time"
)

const (
	// slack covers the seconds in which memcached counts, and in which clocks are read.
	slack = 4 * time.Second
	// A longer time to live than relative is an absolute time, which memcached converts by its own start, and that is
	// seconds off on a busy machine.
	relative, absoluteSlack = 30 * 24 * time.Hour, 15 * time.Second
	// sameSecond is the time before a flush_all in which an operation lets an item survive it: reads change its time of
	// access, by which memcached decides.
	sameSecond = 3 * time.Second
	// unknownTTL is that of a value whose expiry was not read.
	unknownTTL = -2
)

// stored is what a key contains, or what a read returned.
type stored struct {
	there bool
	text  string
	flags uint32
	// expires is zero for never.
	expires time.Time
	// within is how long the operation took that wrote or read it: the server's clock counts from some time of that.
	within time.Duration
	// behind and ahead are by how much the clocks of the servers are off that were restarted before a read.
	behind, ahead time.Duration
	// ttl that was read, in seconds: -1 for never.
	ttl int64
	// stale was invalidated, and reads show that; a placeholder belongs to the first reader.
	stale, placeholder bool
	// marked is what a read shows for both.
	marked bool
}

func (v stored) String() string {
	if !v.there {
		return "nothing"
	}
	text := fmt.Sprintf("%.60q (%d bytes, flags %d, ttl %d", v.text, len(v.text), v.flags, v.ttl)
	if !v.expires.IsZero() {
		text += fmt.Sprintf(", expires in %.0fs", time.Until(v.expires).Seconds())
	}
	for mark, is := range map[string]bool{"stale": v.stale, "placeholder": v.placeholder, "marked": v.marked} {
		if is {
			text += ", " + mark
		}
	}
	return text + ")"
}

// content is what a key contains as far as its worker knows.
type content struct {
	now stored
	// maybe is what it may contain from now on, after a change without an answer.
	maybe *stored
	// gone: a flush_all may have deleted it.
	gone bool
	// late: it may still do so.
	late bool
	// used is the time of the last change or read.
	used time.Time
	// before are hashes of what it contained earlier.
	before map[uint64]struct{}
}

var seed = maphash.MakeSeed()

func hash(text string) uint64 { return maphash.String(seed, text) }

func (c *content) open() bool { return c.maybe != nil }

func (c *content) String() string {
	text := c.now.String()
	if c.maybe != nil {
		text += " or " + c.maybe.String()
	}
	if c.gone {
		text += " or flushed"
	}
	return text
}

// certain reports whether only one outcome of an operation is right.
func (c *content) certain(now time.Time) bool {
	return c.maybe == nil && !c.gone && !c.now.stale && !c.now.placeholder &&
		(c.now.expires.IsZero() || !c.now.there || c.now.expires.Sub(now) > 2*slack)
}

// write records an attempt to change the content.
func (c *content) write(next stored, came outcome) {
	switch came {
	case undone:
		return
	case unknown:
		c.maybe = &next
		if next.there {
			c.before[hash(next.text)] = struct{}{}
		}
	case done:
		c.now, c.gone = next, false
		if next.there {
			c.before[hash(next.text)] = struct{}{}
		}
	}
	c.used = time.Now()
}

// flushed records a flush_all.
func (c *content) flushed(at time.Time, answered bool) {
	if !c.now.there && c.maybe == nil {
		return
	}
	if answered && c.maybe == nil && at.Sub(c.used) > sameSecond {
		c.now = stored{}
		return
	}
	c.gone, c.late = true, c.late || !answered
}

// saw records what was found at a time, which is what the key contains from now on.
func (c *content) saw(found stored, at time.Time) Kind {
	c.used = at
	if c.maybe != nil && found.like(*c.maybe) == fine && c.now.expected(found, at) != fine && c.maybe.expected(found, at) == fine {
		c.now, c.maybe = *c.maybe, nil
		return fine
	}
	kind := c.now.expected(found, at)
	if kind == fine {
		c.now.there = found.there
		c.gone = c.gone && c.late
		if !found.there {
			c.now = stored{}
		}
		return fine
	}
	if !found.there && c.gone {
		c.now, c.gone = stored{}, false
		return fine
	}
	if kind == Stale {
		switch _, known := c.before[hash(found.text)]; {
		case !known:
			kind = Wrong
		case !c.now.there:
			kind = Back
		}
	}
	switch {
	case found.ttl > 0:
		found.expires = at.Add(time.Duration(found.ttl) * time.Second)
	case found.ttl == unknownTTL:
		found.expires = c.now.expires
	}
	c.now = found
	return kind
}

// like compares the values without their expiry.
func (v stored) like(want stored) Kind {
	switch {
	case v.there != want.there:
		return Stale
	case !v.there:
		return fine
	case v.text != want.text:
		return Stale
	case v.flags != want.flags && !want.placeholder:
		return Wrong
	}
	return fine
}

// expected compares what was found with this value. Stale means any other value.
func (v stored) expected(found stored, at time.Time) Kind {
	if !found.there {
		if !v.there || v.stale || v.placeholder || !v.expires.IsZero() && at.Add(slack).After(v.expires) {
			return fine
		}
		return Lost
	}
	if kind := found.like(v); kind != fine {
		return kind
	}
	if (v.stale || v.placeholder) && !found.marked {
		return Stale
	}
	if found.ttl == unknownTTL {
		return fine
	}
	if v.expires.IsZero() {
		if found.ttl != -1 {
			return Expiry
		}
		return fine
	}
	left := v.expires.Sub(at)
	allowed := slack
	if left > relative {
		allowed = absoluteSlack
	}
	allowed += v.within + found.within
	if off := left - time.Duration(found.ttl)*time.Second; found.ttl < 0 || off > allowed+found.ahead || -off > allowed+found.behind {
		return Expiry
	}
	return fine
}
