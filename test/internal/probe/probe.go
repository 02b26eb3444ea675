// Package probe opens new connections to an address, as clients without a pool do, and records those without an answer.
package probe

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// Every is between the starts of two connections.
	Every = 20 * time.Millisecond
	// timeout is for a machine that is busy with other tests.
	timeout = 2 * time.Second
)

// Failure is a connection without an answer.
type Failure struct {
	Began time.Time
	Err   error
}

// Report summarizes the connections so far.
type Report struct {
	Address     string
	Connections int
	Failures    []Failure
	// Slowest is the slowest answer.
	Slowest time.Duration
	// Silence is the longest time between two answers of any connections.
	Silence time.Duration
}

// String returns a summary, and a line for each failure.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d new connections to %s failed, slowest answer %s", len(r.Failures), r.Connections, r.Address, r.Slowest.Round(time.Millisecond))
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\n  %s %v", f.Began.Format("15:04:05.000"), f.Err)
	}
	return b.String()
}

// Probe opens connections until Stop.
type Probe struct {
	stop   context.CancelFunc
	ended  chan struct{}
	lock   sync.Mutex
	report Report
	// last is the time of the last answer.
	last time.Time
}

// Start starts a probe of an address.
func Start(address string) *Probe {
	ctx, stop := context.WithCancel(context.Background())
	p := &Probe{stop: stop, ended: make(chan struct{}), report: Report{Address: address}}
	go p.run(ctx)
	return p
}

// Stop stops the probe, waits for open connections and returns the report. You can call it again.
func (p *Probe) Stop() Report {
	p.stop()
	<-p.ended
	return p.Report()
}

// Report returns the report so far.
func (p *Probe) Report() Report {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.report
}

func (p *Probe) run(ctx context.Context) {
	defer close(p.ended)
	var underway sync.WaitGroup
	defer underway.Wait()
	ticks := time.NewTicker(Every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			// in parallel: a connection that waits must not delay the next one
			underway.Go(p.connect)
		}
	}
}

func (p *Probe) connect() {
	began := time.Now()
	err := Ask(context.Background(), p.report.Address)
	ended := time.Now()
	p.lock.Lock()
	defer p.lock.Unlock()
	p.report.Connections++
	if err != nil {
		p.report.Failures = append(p.report.Failures, Failure{began, err})
		return
	}
	p.report.Slowest = max(p.report.Slowest, ended.Sub(began))
	if !p.last.IsZero() {
		p.report.Silence = max(p.report.Silence, ended.Sub(p.last))
	}
	p.last = ended
}

// Ask asks memcached for its version over a new connection.
func Ask(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := protocol.Dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = connection.Version(ctx)
	return err
}
