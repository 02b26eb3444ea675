// Package serve answers the operator, the kubelet and Prometheus over HTTP, by the state that the supervisor publishes.
package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/forwarder"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/connlimit"
)

const (
	// maxConnections bounds the memory that HTTP clients cost the agent, about 20 KiB each.
	maxConnections = 128
	// readyTimeout bounds the time for which /readyz waits for a start in progress, so
	// that a probe that is slightly early need not wait for the next period. The
	// kubelet's own default timeout is 1 s.
	readyTimeout = 800 * time.Millisecond
	// receivedTimeout is the same for a handover, during which no pod of the shard serves
	// at the end. It is longer than the period of the kubelet's probes, 1 s, so that the
	// next probe follows at once, and shorter than their timeout, 5 s.
	receivedTimeout = 1800 * time.Millisecond
	// servingTimeout is how slowly a memcached that serves may respond. No other pod serves its shard, so a slow answer is
	// better for clients than a refused connection; one that hangs is unready after two probes.
	servingTimeout = 3 * time.Second
	// statsTimeout bounds the wait for memcached's statistics in /status.
	statsTimeout = 700 * time.Millisecond
	// healthTimeout is long because a restart by the kubelet is worse than a pause.
	healthTimeout = 4 * time.Second
	// maxStatsWaiters bounds how many requests for /status wait for statistics at once.
	// The probes wait behind them for the same connection to memcached.
	maxStatsWaiters = 8
)

// Status answers /status and the probes of the kubelet, once a first state was published and started is closed.
func Status(listener net.Listener, states *States, started <-chan struct{}) {
	server := &http.Server{
		Handler:           awaitStart(started, StatusHandler(states)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		MaxHeaderBytes:    8 << 10,
	}
	// The next request to a Service must be able to reach another pod.
	server.SetKeepAlivesEnabled(false)
	_ = server.Serve(&connlimit.Listener{Listener: listener, Limit: maxConnections})
}

// awaitStart delays requests until the supervisor has published its first state. /healthz answers before, or the kubelet
// would kill a container that waits for a slow node or for a Secret.
func awaitStart(started <-chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			select {
			case <-started:
			default:
				respond(w, nil)
				return
			}
		}
		select {
		case <-started:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// StatusHandler returns what answers.
func StatusHandler(states *States) http.Handler {
	mux := http.NewServeMux()
	waiters := make(chan struct{}, maxStatsWaiters)
	mux.HandleFunc("GET "+wire.StatusPath, func(w http.ResponseWriter, r *http.Request) {
		status := states.Load().statusNow()
		select {
		case waiters <- struct{}{}:
			status = statusWithStats(r.Context(), states.Load())
			<-waiters
		default: // as if memcached did not return its statistics
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		respond(w, checkHealth(r.Context(), states.Load()))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		respond(w, checkReadiness(r.Context(), states))
	})
	return mux
}

func respond(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// statusWithStats adds memcached's current statistics to the published status. They
// are zero if memcached does not return them.
func statusWithStats(ctx context.Context, current *State) wire.Status {
	status := current.statusNow()
	if !current.Serving() {
		return status
	}
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	stats, err := current.Client.GeneralStats(ctx)
	if err != nil {
		return status
	}
	status.Version = stats.Version
	status.Items = stats.Items
	status.Bytes = stats.Bytes
	status.MaxBytes = stats.MaxBytes
	status.CurrConnections = stats.Connections
	status.UptimeSeconds = stats.Uptime
	status.Gets, status.Hits = stats.Lookups, stats.Hits
	status.RecentGets, status.RecentHits = current.Client.RecentLookups(time.Now(), stats)
	return status
}

// checkHealth is lenient, because a kill without a save costs the shard. While
// memcached need not respond, a running agent is enough.
func checkHealth(ctx context.Context, current *State) error {
	if !current.Serving() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	err := current.Client.Ping(ctx)
	if err == nil {
		return nil
	}
	select {
	case <-current.Superseded:
		return nil
	default:
		return fmt.Errorf("memcached does not respond: %w", err)
	}
}

// checkReadiness returns nil while memcached serves, also during a drain.
func checkReadiness(ctx context.Context, states *States) error {
	began := time.Now()
	for {
		current := states.Load()
		if current.Serving() {
			return checkServing(ctx, current)
		}
		var timeout time.Duration
		switch current.Status.Phase {
		case wire.PhaseStarting, wire.PhaseRestarting:
			timeout = readyTimeout
		case wire.PhaseReceiving:
			timeout = receivedTimeout
		default:
			return fmt.Errorf("memcached is not serving: phase %s", current.Status.Phase)
		}
		select {
		case <-current.Superseded:
		case <-time.After(timeout - time.Since(began)):
			return fmt.Errorf("memcached is not serving yet: phase %s", current.Status.Phase)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func checkServing(ctx context.Context, current *State) error {
	ctx, cancel := context.WithTimeout(ctx, servingTimeout)
	defer cancel()
	if err := current.Client.Ping(ctx); err != nil {
		return fmt.Errorf("memcached does not respond: %w", err)
	}
	return nil
}

// States contains the latest state, for readers on any goroutine.
type States = atomic.Pointer[State]

// State is what the supervisor publishes. It is immutable.
type State struct {
	Status wire.Status
	// Client is nil while memcached does not serve.
	Client *process.Client
	// Forwarder is nil unless the agent forwards the connections of clients.
	Forwarder *forwarder.Forwarder
	// Superseded is closed when there is a newer state.
	Superseded chan struct{}
}

// Serving returns whether memcached serves.
func (s *State) Serving() bool { return s.Client != nil }

// statusNow returns the status with the present number of plain connections, and the time of the last one.
func (s *State) statusNow() wire.Status {
	status := s.Status
	if s.Forwarder != nil && status.Secrets != nil {
		secrets, connections := *status.Secrets, s.Forwarder.Connections()
		secrets.Certificate.PlainConnections, secrets.Certificate.LastPlainConnection = connections.Plain, connections.LastPlain
		status.Secrets = &secrets
	}
	return status
}
