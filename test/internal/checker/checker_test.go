package checker

import (
	"bufio"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
)

func TestWriteWithoutAnswerAllowsBothValuesUntilOneIsSeen(t *testing.T) {
	value := func(text string) stored { return stored{there: text != "", text: text, ttl: unknownTTL} }
	for _, sequence := range []struct {
		name string
		// now is what the key contains, maybe what it may contain, unless they are equal.
		now, maybe string
		saw        []string
		want       []Kind
	}{
		{"not done, then done, then reverted", "1", "2", []string{"1", "1", "2", "2", "1"}, []Kind{fine, fine, fine, fine, Stale}},
		{"late deletion", "1", "", []string{"1", "", "1"}, []Kind{fine, fine, Back}},
		{"lost, then written late", "1", "2", []string{"", "2", "1"}, []Kind{Lost, fine, Stale}},
		{"deleted, and back", "", "", []string{"", "1"}, []Kind{fine, Back}},
		{"invented value", "1", "1", []string{"2"}, []Kind{Wrong}},
	} {
		k := content{before: map[uint64]struct{}{}}
		k.write(value("1"), done)
		k.write(value(sequence.now), done)
		if sequence.maybe != sequence.now {
			k.write(value(sequence.maybe), unknown)
		}
		for i, text := range sequence.saw {
			if kind := k.saw(value(text), time.Now()); kind != sequence.want[i] {
				t.Errorf("%s: read %d of %q is %q, want %q", sequence.name, i+1, text, kind, sequence.want[i])
			}
		}
	}
}

func TestWriteThatReachedNoServerIsUndone(t *testing.T) {
	server, peer := fake.Pipe()
	_ = peer.Close()
	for name, c := range map[string]struct {
		client *client
		want   outcome
	}{
		"no server is ready":   {&client{address: func() string { return "" }}, undone},
		"a closed port":        {&client{address: func() string { return "127.0.0.1:1" }}, undone},
		"a server that closes": {&client{conn: server, reader: bufio.NewReader(server)}, unknown},
	} {
		if _, _, err := c.client.do([]byte("md a\r\n")); outcomeOf(err) != c.want {
			t.Errorf("a write to %s is %d (%v), want %d", name, outcomeOf(err), err, c.want)
		}
	}
}

// An item may live longer by what the clock of a restarted memcached is behind, and shorter by what it is ahead.
func TestExpiryFollowsTheClocksOfTheServers(t *testing.T) {
	now := time.Now()
	servers := &clocks{zero: map[string][3]time.Time{}}
	for _, reading := range []struct {
		address string
		late    time.Duration
	}{{"old", time.Second}, {"old", 0}, {"old", 20 * time.Second}, {"new", time.Hour}, {"old", 19 * time.Second}} {
		servers.read(reading.address, now.Add(reading.late))
	}
	want := stored{there: true, expires: now.Add(100 * time.Second)}
	for ttl, kind := range map[int64]Kind{94: Expiry, 95: fine, 100: fine, 123: fine, 125: Expiry} {
		found := stored{there: true, ttl: ttl}
		found.behind, found.ahead = servers.off()
		if got := want.expected(found, now); got != kind {
			t.Errorf("a time to live of %d s with clocks that are behind by %s: %q, want %q", ttl, found.behind, got, kind)
		}
	}
}
