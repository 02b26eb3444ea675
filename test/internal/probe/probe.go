// Package probe opens new connections to an address, as clients without a pool do, and records those without an answer.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// Every is between the starts of two connections.
	Every = 40 * time.Millisecond
	// timeout bounds a hang. It does not hide a lost connection: see Ask.
	timeout = time.Minute
)

// Failure is a connection without an answer.
type Failure struct {
	Began, Failed time.Time
	Err           error
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
	address func() string
	stop    context.CancelFunc
	stopped chan struct{}
	lock    sync.Mutex
	report  Report
	// last is the time of the last answer.
	last time.Time
}

// Start starts a probe of an address.
func Start(address string) *Probe {
	return Follow(address, func() string { return address })
}

// Follow starts a probe that asks for the address of each connection, as a proxy does. The name is that of the report.
func Follow(name string, address func() string) *Probe {
	ctx, stop := context.WithCancel(context.Background())
	p := &Probe{address: address, stop: stop, stopped: make(chan struct{}), report: Report{Address: name}}
	go p.run(ctx)
	return p
}

// Stop stops the probe, waits for open connections and returns the report. You can call it again.
func (p *Probe) Stop() Report {
	p.stop()
	<-p.stopped
	return p.Report()
}

// Report returns the report so far.
func (p *Probe) Report() Report {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.report
}

func (p *Probe) run(ctx context.Context) {
	defer close(p.stopped)
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
	err := Ask(context.Background(), p.address())
	stopped := time.Now()
	p.lock.Lock()
	defer p.lock.Unlock()
	p.report.Connections++
	if err != nil {
		p.report.Failures = append(p.report.Failures, Failure{began, stopped, err})
		return
	}
	p.report.Slowest = max(p.report.Slowest, stopped.Sub(began))
	if !p.last.IsZero() {
		p.report.Silence = max(p.report.Silence, stopped.Sub(p.last))
	}
	p.last = stopped
}

// Ask asks memcached for its version over a new connection. A connection that answers only because the kernel repeated the
// request for it, after one second, has failed for a client that waits less long.
func Ask(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	server := protocol.Server{Address: address, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := firstTry(connection); err != nil {
			return nil, errors.Join(err, connection.Close())
		}
		return connection, nil
	}}
	connection, err := server.Dial(ctx)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = connection.Version(ctx)
	return err
}

// firstTry returns an error if the kernel had to repeat the request for a connection.
func firstTry(connection net.Conn) error {
	raw, err := connection.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	var info *unix.TCPInfo
	var infoErr error
	if err := raw.Control(func(fd uintptr) { info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); err != nil {
		return err
	}
	if infoErr != nil {
		return fmt.Errorf("reading the state of a connection: %w", infoErr)
	}
	if info.Total_retrans > 0 {
		return fmt.Errorf("the request for a connection was lost %d times", info.Total_retrans)
	}
	return nil
}
