package handover

import (
	"encoding/json"
	"time"
)

// UsesName is the name of Uses in the state.
const UsesName = "uses"

// maxSpans is how many spans Uses have at most.
const maxSpans = 256

// Uses are when clients last used the items that came in a handover. The target's memcached doesn't know that: for it, each one was
// last used when it arrived. But until a client stores an item again, its CAS is that of its arrival, and items arrive in the order of
// their last use, but for those that changed during the handover. So it is enough to know the mean of each span of CASes.
type Uses struct {
	// First is the CAS of the first item, Count their number.
	First, Count uint64
	// Each is the number of items in a span.
	Each float64
	// At is a Unix time in seconds. The items of a span had been idle then for so many seconds, and clients had read a share of them
	// since they were stored: 0 to 255.
	At   int64
	Idle []int64
	Read []byte
}

// ParseUses returns nil for what is not the state of this name.
func ParseUses(content []byte) *Uses {
	var u Uses
	if json.Unmarshal(content, &u) != nil || len(u.Idle) == 0 || len(u.Idle) != len(u.Read) || u.Each <= 0 {
		return nil
	}
	return &u
}

// Content returns the state of this name; nil without uses.
func (u *Uses) Content() []byte {
	if u == nil {
		return nil
	}
	content, _ := json.Marshal(u)
	return content
}

// Of returns when clients last used an item, and whether they have read it since it was stored, by what its memcached knows. Both are
// right on average.
func (u *Uses) Of(cas uint64, accessed time.Time, fetched bool) (used time.Time, read bool) {
	if u == nil || fetched || cas < u.First || cas-u.First >= u.Count {
		return accessed, fetched
	}
	item := cas - u.First
	span := int(min(float64(item)/u.Each, float64(len(u.Idle)-1))) // a conversion of more than an int has is undefined
	share := uint64(u.Read[span])
	return time.Unix(u.At-u.Idle[span], 0), (item+1)*share/255 > item*share/255 // evenly among neighbors
}

// usesSent collects the uses of the items that a source sends.
type usesSent struct {
	each  int64 // items in a span
	spans []spanSent
}

// spanSent has sums.
type spanSent struct{ items, used, read int64 }

func (u *usesSent) add(used time.Time, read bool) {
	if last := len(u.spans) - 1; last < 0 || u.spans[last].items == u.each {
		if len(u.spans) == maxSpans {
			for i := range maxSpans / 2 {
				a, b := u.spans[2*i], u.spans[2*i+1]
				u.spans[i] = spanSent{a.items + b.items, a.used + b.used, a.read + b.read}
			}
			u.spans = u.spans[:maxSpans/2]
			u.each *= 2
		}
		u.each = max(u.each, 1)
		u.spans = append(u.spans, spanSent{})
	}
	span := &u.spans[len(u.spans)-1]
	span.items++
	span.used += used.Unix()
	if read {
		span.read++
	}
}

// sent returns the uses as if the first item had the CAS 0.
func (u *usesSent) sent(at time.Time) *Uses {
	if len(u.spans) == 0 {
		return nil
	}
	uses := &Uses{Each: float64(u.each), At: at.Unix()}
	for _, span := range u.spans {
		uses.Count += uint64(span.items)
		uses.Idle = append(uses.Idle, max(uses.At-span.used/span.items, 0))
		uses.Read = append(uses.Read, byte((span.read*255+span.items/2)/span.items))
	}
	return uses
}

// arrived returns the uses in a target, whose first item has the CAS first. ahead is by how many milliseconds the source's clock is ahead. The
// items that memcached rejected are assumed to be spread over all.
func (u *Uses) arrived(first uint64, ahead, rejected int64) *Uses {
	if u == nil || first == 0 || uint64(rejected) >= u.Count {
		return nil
	}
	arrived := *u
	arrived.First, arrived.Count = first, u.Count-uint64(rejected)
	arrived.Each *= float64(arrived.Count) / float64(u.Count)
	arrived.At -= ahead / 1000
	return &arrived
}
