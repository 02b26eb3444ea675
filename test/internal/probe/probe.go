// Package probe opens new connections to an address, as clients without a pool do, and records those without an answer.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
	// late is less than the time after which the kernel repeats a request for a connection. While a machine stalls, it does so although
	// the answer has arrived, and Every is late, too.
	late = 500 * time.Millisecond
)

var errLost = errors.New("the request for a connection was lost")

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
	ask     func(context.Context) error
	stop    context.CancelFunc
	stopped chan struct{}
	lock    sync.Mutex
	report  Report
	// stalls are from and until when the probe didn't run.
	stalls [][2]time.Time
}

// Start starts a probe of an address.
func Start(address string) *Probe {
	return With(address, func(ctx context.Context) error { return Ask(ctx, address) })
}

// With starts a probe that opens each connection in another way. The name is that of the report.
func With(name string, ask func(context.Context) error) *Probe {
	ctx, stop := context.WithCancel(context.Background())
	p := &Probe{ask: ask, stop: stop, stopped: make(chan struct{}), report: Report{Address: name}}
	go p.run(ctx)
	return p
}

// Stop stops the probe, waits for open connections and returns the report. You can call it again.
func (p *Probe) Stop() Report {
	p.stop()
	<-p.stopped
	return p.Report()
}

// Report returns the report so far, without the kernel's repetitions in a stall.
func (p *Probe) Report() Report {
	p.lock.Lock()
	defer p.lock.Unlock()
	report := p.report
	report.Failures = slices.DeleteFunc(slices.Clone(report.Failures), func(f Failure) bool {
		stalled := func(s [2]time.Time) bool { return f.Began.Before(s[1]) && s[0].Before(f.Failed) }
		return errors.Is(f.Err, errLost) && slices.ContainsFunc(p.stalls, stalled)
	})
	return report
}

func (p *Probe) run(ctx context.Context) {
	defer close(p.stopped)
	var underway sync.WaitGroup
	defer underway.Wait()
	ticks := time.NewTicker(Every)
	defer ticks.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			p.runs(last, time.Now())
			return
		case <-ticks.C:
			last = p.runs(last, time.Now())
			// in parallel: a connection that waits must not delay the next one
			underway.Go(p.connect)
		}
	}
}

// runs records a stall if the probe has not run since last.
func (p *Probe) runs(last, now time.Time) time.Time {
	if now.Sub(last) > late {
		p.lock.Lock()
		defer p.lock.Unlock()
		p.stalls = append(p.stalls, [2]time.Time{last, now})
	}
	return now
}

func (p *Probe) connect() {
	began := time.Now()
	err := p.ask(context.Background())
	stopped := time.Now()
	p.lock.Lock()
	defer p.lock.Unlock()
	p.report.Connections++
	if err != nil {
		p.report.Failures = append(p.report.Failures, Failure{began, stopped, err})
		return
	}
	p.report.Slowest = max(p.report.Slowest, stopped.Sub(began))
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
		return fmt.Errorf("%w %d times", errLost, info.Total_retrans)
	}
	return nil
}
