package peer

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

func TestAgentRestsAfterItsShareOfTheProcessor(t *testing.T) {
	const works, work = 1000, 300 * time.Microsecond
	each := time.Duration(float64(work) / partOf(2))
	for name, c := range map[string]struct {
		uses  time.Duration // of the processor, by each work
		bytes int
		// idle is how long the agent has nothing to do after half of the works, others how many connections work at the same time, and
		// forwards how much of the processor the agent uses all the time for something else.
		idle     time.Duration
		others   int
		forwards float64
		want     time.Duration // for each work
	}{
		"the processor":           {uses: work, want: each},
		"the network":             {bytes: bytesPerSecond / 100, want: time.Second / 100},
		"a time of nothing to do": {uses: work, idle: works * each, want: 2 * each},
		"two connections":         {uses: work, others: 1, want: 2 * each},
		"a garbage collection":    {uses: time.Minute, want: time.Minute + longestRest},
		"forwarded connections":   {uses: work, forwards: 0.5, want: each},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, used := time.Now(), time.Duration(0)
			s := &share{part: partOf(2), processor: func() time.Duration {
				return used + time.Duration(c.forwards*float64(time.Since(began)))
			}}
			workers := []worker{s.worker(), s.worker()}[:1+c.others]
			for n := range works {
				if n == works/2 {
					_ = peerlink.Sleep(t.Context(), c.idle)
				}
				for i := range workers {
					used += time.Duration((1 - c.forwards) * float64(c.uses))
					_ = peerlink.Sleep(t.Context(), c.uses)
					workers[i].rest(t.Context(), c.bytes)
				}
			}
			now := time.Now()
			if took := now.Sub(began) / works; took < c.want*9/10 || took > c.want*11/10 {
				t.Errorf("%s: each takes %s, want %s", name, took, c.want)
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
