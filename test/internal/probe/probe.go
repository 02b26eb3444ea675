// Package probe opens a new connection to an address again and again, as clients
// without a pool do, and remembers each that was not answered.
package probe

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

const (
	// Every is how long after one connection the next begins.
	Every = 20 * time.Millisecond
	// patience is how long a connection may take to be answered, on a machine that
	// may be busy with other tests.
	patience = 2 * time.Second
)

// Failure is a connection that was not answered.
type Failure struct {
	Began time.Time
	Err   error
}

// Report is what came of the connections so far.
type Report struct {
	Address     string
	Connections int
	Failures    []Failure
	// Slowest is how long the slowest answered connection took.
	Slowest time.Duration
	// Silence is the longest time between two answers, of whichever connections.
	Silence time.Duration
}

// String tells the report in a sentence, and each failure in a line.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d new connections to %s failed, slowest answer %s", len(r.Failures), r.Connections, r.Address, r.Slowest.Round(time.Millisecond))
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\n  %s %v", f.Began.Format("15:04:05.000"), f.Err)
	}
	return b.String()
}

// Probe opens connections until it is stopped.
type Probe struct {
	stop   context.CancelFunc
	ended  chan struct{}
	lock   sync.Mutex
	report Report
	// last is when the last answer came; zero before the first.
	last time.Time
}

// Start begins to open connections to an address.
func Start(address string) *Probe {
	ctx, stop := context.WithCancel(context.Background())
	p := &Probe{stop: stop, ended: make(chan struct{}), report: Report{Address: address}}
	go p.run(ctx)
	return p
}

// Stop ends the probe, after the connections that are under way, and returns
// what came of them all. It may be called again.
func (p *Probe) Stop() Report {
	p.stop()
	<-p.ended
	return p.Report()
}

// Report returns what came of the connections so far.
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
			// beside each other: one that waits must not keep the next from being tried
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

// Ask has memcached tell its version over a connection of its own.
func Ask(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	connection, err := memcache.Dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = connection.Version(ctx)
	return err
}
