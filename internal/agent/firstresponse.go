package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// hangTimeout bounds the time for which memcached may accept connections without
// responding. It listens only after it has read its items, so by then it hangs.
const hangTimeout = 10 * time.Second

// firstResponse reports that a process responded for the first time, or that it
// hangs.
type firstResponse struct {
	process *process
	// stats is zero if memcached responded with an error.
	stats protocol.General
	hangs bool
}

// awaitFirstResponse reports to responses. It reports nothing if the process exits
// before.
func awaitFirstResponse(p *process, responses chan<- firstResponse) {
	var silentSince time.Time
	for pause := 2 * time.Millisecond; ; pause = min(pause*3/2, 50*time.Millisecond) {
		stats, err := queryOwn(p)
		switch {
		case err == nil:
			responses <- firstResponse{process: p, stats: stats}
			return
		case !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded):
			silentSince = time.Time{}
		case silentSince.IsZero():
			silentSince = time.Now()
		case time.Since(silentSince) > hangTimeout:
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

// queryOwn returns an error if another memcached responds at the port. This process
// is then about to exit.
func queryOwn(p *process) (protocol.General, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	stats, err := p.client.generalStats(ctx)
	if protocol.IsAnswer(err) {
		return protocol.General{}, nil
	}
	if err == nil && stats.PID != p.pid {
		err = fmt.Errorf("process %d responds at the port", stats.PID)
	}
	return stats, err
}
