package peer

import (
	"io"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

func TestAgentRestsAfterItsShareOfTheProcessor(t *testing.T) {
	const works, work = 1000, 300 * time.Microsecond
	each := time.Duration(float64(work) / partOf(2))
	for name, c := range map[string]struct {
		uses  time.Duration // of the processor, by each work
		bytes int
		// idle is how long the agent has nothing to do after half of the works, others how many connections work at the same time.
		idle   time.Duration
		others int
		want   time.Duration // for each work
	}{
		"the processor":           {uses: work, want: each},
		"the network":             {bytes: bytesPerSecond / 100, want: time.Second / 100},
		"a time of nothing to do": {uses: work, idle: works * each, want: 2 * each},
		"two connections":         {uses: work, others: 1, want: 2 * each},
		"a garbage collection":    {uses: time.Minute, want: time.Minute + longestRest},
		"nothing but other tasks": {want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			var used time.Duration
			s := &share{part: partOf(2), processor: func() time.Duration { return used }}
			began := time.Now()
			now := began
			for n := range works {
				if n == works/2 {
					now = now.Add(c.idle)
				}
				for range 1 + c.others {
					used += c.uses
					now = now.Add(c.uses)
					now = now.Add(s.wait(c.bytes, now))
				}
			}
			if took := now.Sub(began) / works; took < c.want*9/10 || took > c.want*11/10 {
				t.Errorf("each takes %s, want %s", took, c.want)
			}
		})
	}
}

func TestShareGrowsWithTheProcessorsToHalfOfOne(t *testing.T) {
	for processors, want := range map[int]float64{1: 0.075, 2: 0.15, 4: 0.3, 8: 0.5, 64: 0.5} {
		if got := partOf(processors); got != want {
			t.Errorf("of %d processors, an agent uses %v of one, want %v", processors, got, want)
		}
	}
}

// What a shard lists, copies and deletes goes through its connections and scans.
func TestConnectionsAndScansOfMovesRest(t *testing.T) {
	var network fake.Network
	fake.New().Serve(&network, "memcached:11211")
	defer network.Close()
	former, rests := ofMoves, 0
	ofMoves = &share{part: 1, processor: func() time.Duration { rests++; return 0 }}
	t.Cleanup(func() { ofMoves = former })

	memory := &Memory{Client: process.NewClient(protocol.Server{Address: "memcached:11211", DialContext: network.DialContext})}
	conn, err := memory.movable(Config{}, nil).Server.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "mn\r\n"); err != nil || rests != 1 {
		t.Errorf("%d rests before a request, %v", rests, err)
	}
	if _, err := io.ReadFull(conn, make([]byte, len("MN\r\n"))); err != nil || rests < 2 {
		t.Errorf("%d rests after an answer, %v", rests, err)
	}
	rests = 0
	which := ofMoves.scan(t.Context(), func(key []byte) bool { return string(key) == "moves" })
	for range 2 * restItems {
		if !which(&memfile.Item{Key: []byte("moves")}) || which(&memfile.Item{Key: []byte("stays")}) {
			t.Fatal("a scan visits other items")
		}
	}
	if rests != 4 {
		t.Errorf("%d rests of a scan, want 4", rests)
	}
}
