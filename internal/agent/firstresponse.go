package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// hangTimeout bounds the time for which memcached may accept connections without
	// responding. It listens only after it has read its items, so by then it hangs.
	hangTimeout = 10 * time.Second
	// errorTimeout bounds the wait for statistics from a memcached that responds with
	// errors, as when clients occupy all of its connections.
	errorTimeout = 2 * time.Second
)

// firstResponse reports that a process responded for the first time, or that it
// hangs.
type firstResponse struct {
	process *process
	// stats is nil if memcached responded only with errors.
	stats *protocol.General
	hangs bool
}

// awaitFirstResponse reports to responses. It reports nothing if the process exits
// before.
func awaitFirstResponse(p *process, responses chan<- firstResponse) {
	var silentSince, errorsSince time.Time
	for pause := 2 * time.Millisecond; ; pause = min(pause*3/2, 50*time.Millisecond) {
		stats, err := queryOwn(p)
		silent := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
		switch {
		case err == nil:
			responses <- firstResponse{process: p, stats: &stats}
			return
		case isLongerThan(errorTimeout, protocol.IsAnswer(err), &errorsSince):
			responses <- firstResponse{process: p}
			return
		case isLongerThan(hangTimeout, silent, &silentSince):
			responses <- firstResponse{process: p, hangs: true}
			return
		}
		select {
		case <-p.done:
			return
		case <-time.After(pause):
		}
	}
}

// isLongerThan reports whether a state has lasted for longer than d. It keeps in since
// when the state began.
func isLongerThan(d time.Duration, state bool, since *time.Time) bool {
	if !state {
		*since = time.Time{}
	} else if since.IsZero() {
		*since = time.Now()
	}
	return state && time.Since(*since) > d
}

// queryOwn returns an error if another memcached responds at the port. This process
// is then about to exit.
func queryOwn(p *process) (protocol.General, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	stats, err := p.client.generalStats(ctx)
	if err == nil && stats.PID != p.pid {
		err = fmt.Errorf("process %d responds at the port", stats.PID)
	}
	return stats, err
}
