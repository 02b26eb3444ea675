package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

const (
	// readyHold is how long /readyz waits for a start to end: a probe that came
	// too early by little need not wait for the next period. The kubelet's own
	// default timeout is 1 s.
	readyHold = 800 * time.Millisecond
	// statusTimeout bounds the wait for memcached's numbers in /status.
	statusTimeout = 700 * time.Millisecond
	// healthTimeout is long since a restart by the kubelet is worse than a pause.
	healthTimeout = 4 * time.Second
)

// serveHTTP answers on listener until the process ends.
func serveHTTP(listener net.Listener, b *board) {
	server := &http.Server{
		Handler:           handler(b),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		MaxHeaderBytes:    8 << 10,
	}
	// Whoever asks a Service must be able to meet another pod the next time.
	server.SetKeepAlivesEnabled(false)
	_ = server.Serve(listener)
}

func handler(b *board) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(statusOf(r.Context(), b.view()))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		answer(w, health(r.Context(), b.view()))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answer(w, readiness(r.Context(), b))
	})
	return mux
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// statusOf adds memcached's present numbers to a view, where it gives any.
func statusOf(ctx context.Context, v *view) agentapi.Status {
	status := v.status
	if !v.serves() || !v.asker.endpoint.text {
		return status
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	general, err := v.asker.general(ctx)
	if err != nil {
		return status
	}
	status.Version = general.Version
	status.Items = general.Items
	status.Bytes = general.Bytes
	status.MaxBytes = general.MaxBytes
	status.CurrConnections = general.Connections
	status.UptimeSeconds = general.Uptime
	status.RecentGets, status.RecentHits = v.asker.recent.until(time.Now(), general)
	return status
}

// health is lenient: a kill without a save costs the shard. While memcached is
// not meant to answer, being alive is enough.
func health(ctx context.Context, v *view) error {
	if !v.serves() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	err := v.asker.answers(ctx)
	if err == nil {
		return nil
	}
	select {
	case <-v.replaced:
		return nil
	default:
		return fmt.Errorf("memcached does not answer: %w", err)
	}
}

// readiness is nil while memcached serves and is not held, also while draining.
func readiness(ctx context.Context, b *board) error {
	ctx, cancel := context.WithTimeout(ctx, readyHold)
	defer cancel()
	for {
		v := b.view()
		if v.serves() {
			if err := v.asker.answers(ctx); err != nil {
				return fmt.Errorf("memcached does not answer: %w", err)
			}
			if until := v.status.HoldUntil; !until.IsZero() {
				return fmt.Errorf("the shard is being filled until %s", until.UTC().Format(time.RFC3339))
			}
			return nil
		}
		starting := v.status.Phase == agentapi.PhaseStarting || v.status.Phase == agentapi.PhaseRestarting
		if !starting {
			return fmt.Errorf("memcached does not serve: phase %s", v.status.Phase)
		}
		select {
		case <-v.replaced:
		case <-ctx.Done():
			return fmt.Errorf("memcached does not serve yet: phase %s", v.status.Phase)
		}
	}
}
