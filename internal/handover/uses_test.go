package handover

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestUsesAreThoseOfTheItemsThatArrived(t *testing.T) {
	const first, ahead = 1 << 60, 5000
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		items, rejected int
	}{{1, 0}, {255, 0}, {1000, 100}, {100_000, 0}, {100_000, 20_000}} {
		t.Run(fmt.Sprintf("%d, of which %d are rejected", c.items, c.rejected), func(t *testing.T) {
			// From a year to a minute, in the order in which a source sends them.
			used := func(item int) time.Time {
				return now.Add(-time.Minute - time.Duration(float64(365*24*time.Hour)*math.Pow(1-float64(item)/float64(c.items), 4)))
			}
			var sent usesSent
			for item := range c.items {
				sent.add(used(item), item%4 == 0)
			}
			content := sent.sent(now).Content()
			uses := ParseUses(ParseUses(content).arrived(first, ahead, int64(c.rejected)).Content())
			if len(content) > MaxState || uses == nil {
				t.Fatalf("%d bytes: %s", len(content), content)
			}
			stored, reads := c.items-c.rejected, 0
			for i := range stored {
				item := float64(i) * float64(c.items) / float64(stored)
				got, read := uses.Of(first+uint64(i), now, false)
				if read {
					reads++
				}
				// Half a span of 1/128 of the items is 0.4% of them, and the clocks of the pods differ.
				most := max(1, float64(c.items)/128)
				from, to := used(int(max(item-most, 0))), used(int(min(item+most, float64(c.items-1))))
				if at := got.Add(ahead * time.Millisecond); at.Before(from.Add(-time.Second)) || at.After(to.Add(time.Second)) {
					t.Fatalf("item %d was used at %s, want from %s to %s", i, at, from, to)
				}
			}
			if share := float64(reads) / float64(stored); stored >= 900 && math.Abs(share-0.25) > 0.01 {
				t.Errorf("%.2f of the items were read before", share)
			}
			// Clients have stored, or read, these since.
			for name, cas := range map[string]uint64{"earlier": first - 1, "later": first + uint64(stored), "without CAS": 0} {
				if got, read := uses.Of(cas, now, false); got != now || read {
					t.Errorf("%s: %s, %t", name, got, read)
				}
			}
			if got, read := uses.Of(first+rand.Uint64N(uint64(stored)), now, true); got != now || !read {
				t.Errorf("read: %s, %t", got, read)
			}
		})
	}
}

func TestHandoverWithoutUsesHasNone(t *testing.T) {
	var sent usesSent
	sent.add(time.Now(), true)
	for name, uses := range map[string]*Uses{
		"no items":           new(usesSent).sent(time.Now()),
		"no CAS":             sent.sent(time.Now()).arrived(0, 0, 0),
		"all rejected":       sent.sent(time.Now()).arrived(1, 0, 1),
		"of release 1.0.0":   ParseUses(nil),
		"of a later release": ParseUses([]byte(`{"Idle":[1],"Read":"","Each":1}`)),
		"without a length":   ParseUses([]byte(`{"Idle":[1],"Read":"AA=="}`)),
	} {
		if uses != nil || uses.Content() != nil {
			t.Errorf("%s: %+v", name, uses)
		}
	}
}

// Any content is either no uses, or answers for each item.
func FuzzUses(f *testing.F) {
	var sent usesSent
	for range 1000 {
		sent.add(time.Unix(1_700_000_000, 0), true)
	}
	f.Add(sent.sent(time.Unix(1_800_000_000, 0)).Content(), int64(5000), int64(7))
	f.Add([]byte(`{"Count":9,"Each":1e-300,"Idle":[1],"Read":"AA=="}`), int64(0), int64(0))
	f.Add([]byte(`{"Count":18446744073709551615,"Each":1,"At":-9223372036854775808,"Idle":[1,-9223372036854775808],"Read":"AP8="}`), int64(-1), int64(1))
	f.Fuzz(func(_ *testing.T, content []byte, ahead, rejected int64) {
		uses := ParseUses(content)
		for _, u := range []*Uses{uses, uses.arrived(7, ahead, rejected)} {
			if u = ParseUses(u.Content()); u == nil {
				continue
			}
			var sent usesSent
			for _, cas := range []uint64{0, u.First, u.First + 1, u.First + u.Count/2, u.First + u.Count - 1, u.First + u.Count, math.MaxUint64} {
				sent.add(u.Of(cas, time.Time{}, false))
			}
			sent.sent(time.Time{}).Content()
		}
	})
}
