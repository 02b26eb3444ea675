package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// server is a memcached with gets and set.
type server struct {
	t       *testing.T
	address string

	lock        sync.Mutex
	listener    net.Listener
	connections map[net.Conn]bool
	items       map[string]string
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, address: "127.0.0.1:0", items: map[string]string{}, connections: map[net.Conn]bool{}}
	s.up()
	t.Cleanup(s.down)
	return s
}

// up listens, always at the same address.
func (s *server) up() {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address, s.listener = listener.Addr().String(), listener
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.lock.Lock()
			s.connections[conn] = true
			s.lock.Unlock()
			go s.talk(conn)
		}
	}()
}

func (s *server) down() {
	_ = s.listener.Close()
	s.disconnect()
}

func (s *server) disconnect() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for conn := range s.connections {
		_ = conn.Close()
		delete(s.connections, conn)
	}
}

func (s *server) empty() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.items = map[string]string{}
}

func (s *server) size() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.items)
}

func (s *server) talk(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		var key string
		var size int
		answer := "ERROR\r\n"
		switch {
		case scan(line, "mg %s v f t\r\n", &key):
			s.lock.Lock()
			answer = "EN\r\n"
			if v, ok := s.items[key]; ok {
				answer = fmt.Sprintf("VA %d f0 t-1\r\n%s\r\n", len(v), v)
			}
			s.lock.Unlock()
		case scan(line, "ms %s %d\r\n", &key, &size):
			block := make([]byte, size+2)
			if _, err := io.ReadFull(r, block); err != nil {
				return
			}
			s.lock.Lock()
			s.items[key] = string(block[:size])
			s.lock.Unlock()
			answer = "HD\r\n"
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func scan(line, format string, into ...any) bool {
	n, err := fmt.Sscanf(line, format, into...)
	return err == nil && n == len(into)
}

// started returns a running load on two filled servers.
func started(t *testing.T) (*Load, []*server) {
	t.Helper()
	servers := []*server{serve(t), serve(t)}
	l, err := New(Config{Addresses: []string{servers[0].address, servers[1].address}, Keys: 2000, Rate: 2000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := servers[0].size() + servers[1].size(); n != 2000 {
		t.Fatalf("%d of 2000 keys are there after the filling", n)
	}
	l.Start()
	t.Cleanup(func() { l.Stop() })
	return l, servers
}

// few returns how many operations may have no answer in time because the machine is busy: the
// servers run in this process.
func few(operations int) int { return operations / 4 }

func total(r Report) Counts { return r.Sum(Span{r.Began, r.Began.Add(time.Hour)}) }

// shard returns the sum of one shard.
func (r Report) shard(ordinal int) Counts {
	var sum Counts
	for _, c := range r.Shards[ordinal] {
		sum.add(c)
	}
	return sum
}

func TestFilledCacheHasOnlyHits(t *testing.T) {
	l, _ := started(t)
	began := time.Now()
	time.Sleep(time.Second)
	due := int(2000 * time.Since(began).Seconds())
	c := total(l.Stop())
	atMost := int(2000 * time.Since(began).Seconds())
	if c.Gets < due/2 || c.Hits+c.Errors < c.Gets || c.Errors > few(due) || c.Misses+c.Wrong+c.Fills != 0 {
		t.Errorf("of %d gets %d were hits, with %d errors and %d fills", c.Gets, c.Hits, c.Errors, c.Fills)
	}
	if share := float64(c.Gets) / float64(c.Gets+c.Sets); share < 0.75 || share > 0.85 {
		t.Errorf("%.2f of the operations are gets, want 0.8", share)
	}
	if offered := c.Gets + c.Sets; offered < due*8/10 || offered > atMost*11/10 { // the load began before the clock
		t.Errorf("%d operations, want %d to %d: 2000 a second", offered, due, atMost)
	}
}

func TestMissIsFilled(t *testing.T) {
	l, servers := started(t)
	servers[0].empty()
	time.Sleep(time.Second)
	c := total(l.Stop())
	if c.Misses == 0 || c.Fills < c.Misses*9/10-few(2000) || c.Errors > few(2000) {
		t.Errorf("%d misses, %d fills, %d errors", c.Misses, c.Fills, c.Errors)
	}
	if n := servers[0].size(); n == 0 {
		t.Error("the emptied shard stays empty")
	}
}

func TestConnectionResetIsRetried(t *testing.T) {
	l, servers := started(t)
	const disconnects = 10
	for range disconnects {
		time.Sleep(100 * time.Millisecond)
		servers[0].disconnect()
	}
	r := l.Stop()
	if c := total(r); c.Hits+c.Errors < c.Gets {
		t.Errorf("%d errors, %d of %d gets were hits", c.Errors, c.Hits, c.Gets)
	}
	// Without a retry each disconnect costs an operation of each worker.
	if reset, other := r.shard(0).Errors, r.shard(1).Errors; reset > other+disconnects*workers/4 {
		t.Errorf("%d errors of the shard that disconnects, %d of the other one: want a retry", reset, other)
	}
}

func TestUnavailableShardDoesNotAffectOthers(t *testing.T) {
	l, servers := started(t)
	began := time.Now()
	time.Sleep(Every)
	down := time.Now()
	servers[0].down()
	time.Sleep(2 * time.Second)
	servers[0].up()
	out := time.Since(down)
	time.Sleep(Every)
	due := int(2000 * time.Since(began).Seconds())
	r := l.Stop()
	sums := [2]Counts{r.shard(0), r.shard(1)}
	if sums[0].Errors < int(500*out.Seconds()) || sums[1].Errors > sums[0].Errors/3 {
		t.Errorf("of two shards with 1000 operations a second, one was unavailable for %s and has %d errors, the other %d", out, sums[0].Errors, sums[1].Errors)
	}
	// An answer can be in transit when the server stops.
	if got := sums[0].Silence; got < out*9/10 || got > out+Every+sums[1].Silence {
		t.Errorf("the longest time without an answer is %s, want %s", got, out)
	}
	if got := sums[1].Silence; got > sums[0].Silence/2 {
		t.Errorf("the other shard was silent for %s", got)
	}
	if n := sums[0].Gets + sums[1].Gets; n < due*6/10 {
		t.Errorf("%d gets of %d operations, want 8 of 10: the load waits for answers", n, due)
	}
}

// Also if connections are accepted but never answered, and all workers wait.
func TestSilentShardDelaysAtMostForPatience(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	l, err := New(Config{Addresses: []string{silent.Addr().String()}, Keys: 10, Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	l.Start()
	const offered = 4 * time.Second
	time.Sleep(offered)
	began := time.Now()
	c := total(l.Stop())
	// All operations in turn would take as long as the load, or longer.
	if took := time.Since(began); took > offered*3/4 {
		t.Errorf("stopping took %s", took)
	}
	if n, due := c.Gets+c.Sets, int(1000*began.Sub(started).Seconds()); c.Errors != n || n < due*9/10 {
		t.Errorf("of %d operations, %d are errors, want %d, 1000 a second", n, c.Errors, due)
	}
}

func TestNewRejectsIncompleteConfig(t *testing.T) {
	for name, c := range map[string]Config{
		"NoAddress": {Keys: 1, Rate: 1},
		"NoKeys":    {Addresses: []string{"x:1"}, Rate: 1},
		"NoRate":    {Addresses: []string{"x:1"}, Keys: 1},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
