package checker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// sweepTimeout bounds the last read of all keys of a worker, which pauses for sweepPause after an error.
	sweepTimeout, sweepPause = 2 * time.Minute, 4 * time.Millisecond
)

// Kind of a finding.
type Kind string

// Lost is no finding, as a cache may lose items.
const (
	fine   Kind = ""
	Lost   Kind = "lost"
	Wrong  Kind = "wrong"
	Stale  Kind = "stale"
	Back   Kind = "back"
	Expiry Kind = "wrong expiry"
	Token  Kind = "token matched"
)

// outcome of a write or a deletion.
type outcome int

const (
	// done: the server confirmed it.
	done outcome = iota
	// undone: the request did not reach the server.
	undone
	// unknown: the request may have reached the server.
	unknown
)

// outcomeOf returns the outcome of a write with this error.
func outcomeOf(err error) outcome {
	var op *net.OpError
	switch {
	case err == nil:
		return done
	case errors.As(err, &op) && op.Op == "dial":
		return undone
	default:
		return unknown
	}
}

// maxLostKeys is the number of lost keys in the text of a report.
const maxLostKeys = 20

// Finding is a wrong answer.
type Finding struct {
	Kind Kind
	At   time.Time
	// Key that was read, what it should contain, and what was found.
	Key, Want, Found string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s %s: read %s = %s, want %s", f.At.Format("15:04:05.000"), f.Kind, f.Key, f.Found, f.Want)
}

// Report summarizes all operations.
type Report struct {
	Reads, Writes, Deletes int
	// Unanswered writes and deletions may or may not have happened. Failed operations have not.
	Unanswered, Failed int
	// Lost counts keys that were empty but should not be.
	Lost int
	// LostKeys has a line for each of them.
	LostKeys []string
	// Longest is the longest time without an answer.
	Longest  time.Duration
	Findings []Finding
	// Err is the error of a key that could not be read at the end.
	Err error
}

// String returns a summary, and a line for each finding.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d reads, %d writes and %d deletions were answered, %d had no answer, %d failed; %d items lost, %d wrong answers",
		r.Reads, r.Writes, r.Deletes, r.Unanswered, r.Failed, r.Lost, len(r.Findings))
	for _, f := range r.Findings {
		b.WriteString("\n  " + f.String())
	}
	for i, key := range r.LostKeys {
		if i == maxLostKeys {
			break
		}
		b.WriteString("\n  lost " + key)
	}
	if r.Err != nil {
		fmt.Fprintf(&b, "\n  %v", r.Err)
	}
	return b.String()
}

func (r *Report) add(other Report) {
	r.Reads += other.Reads
	r.Writes += other.Writes
	r.Deletes += other.Deletes
	r.Unanswered += other.Unanswered
	r.Failed += other.Failed
	r.Lost += other.Lost
	r.LostKeys = append(r.LostKeys, other.LostKeys...)
	r.Findings = append(r.Findings, other.Findings...)
	if r.Err == nil {
		r.Err = other.Err
	}
}

// Options of a check.
type Options struct {
	Seed uint64
	// Workers of each server, and keys of each of them.
	Workers, Keys int
	// Pause of a worker after each operation.
	Pause time.Duration
	// LargeBytes is the size of the largest items, which the first worker has; 0 for none.
	LargeBytes int
}

// Checker checks servers until Stop.
type Checker struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	workers []*worker
	once    sync.Once
	// flush is locked while all items are deleted, and read-locked during any other operation.
	flush sync.RWMutex
	clock clock
}

// clock measures the longest time in which no worker had an answer.
type clock struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

func (c *clock) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.last.IsZero() {
		c.longest = max(c.longest, now.Sub(c.last))
	}
	c.last = now
}

// Start starts to check servers that contain no keys of a checker. The address of a server can change; an empty one means
// that it can't be reached.
func Start(o Options, servers ...func() string) *Checker {
	ctx, stop := context.WithCancel(context.Background())
	c := &Checker{stop: stop}
	for _, address := range servers {
		clocks := &clocks{zero: map[string][3]time.Time{}}
		for range o.Workers {
			w := newWorker(o, len(c.workers), &client{address: address, clocks: clocks}, &c.clock)
			c.workers = append(c.workers, w)
			c.running.Go(func() {
				for ctx.Err() == nil {
					c.flush.RLock()
					w.step()
					c.flush.RUnlock()
					time.Sleep(o.Pause) //nolint:forbidigo // the pace of a client
				}
			})
		}
	}
	return c
}

// Between calls do while no worker waits for an answer.
func (c *Checker) Between(do func()) {
	c.flush.Lock()
	defer c.flush.Unlock()
	do()
}

// SoFar returns what the workers have done until now.
func (c *Checker) SoFar() (r Report) {
	c.Between(func() {
		for _, w := range c.workers {
			r.add(w.report)
		}
	})
	return r
}

// FlushAll deletes all items of the only server between two operations of the workers, which pause that long before.
func (c *Checker) FlushAll(pause time.Duration) error {
	c.flush.Lock()
	defer c.flush.Unlock()
	time.Sleep(pause) //nolint:forbidigo // memcached deletes what is older than the second of the request
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	server, err := protocol.At(c.workers[0].client.address()).Dial(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	err = server.Command(ctx, "flush_all")
	for _, w := range c.workers {
		for _, k := range append(w.keys, w.old...) {
			k.flushed(time.Now(), err == nil)
		}
	}
	return err
}

// Stop stops the workers, reads each key once more, and returns the report. You can call it again.
func (c *Checker) Stop() Report {
	c.stop()
	c.running.Wait()
	c.once.Do(func() {
		for _, w := range c.workers {
			c.running.Go(w.sweep)
		}
		c.running.Wait()
	})
	r := c.SoFar()
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	r.Longest = c.clock.longest
	return r
}
