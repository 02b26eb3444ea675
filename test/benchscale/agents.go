package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// agents answers for all pods: their addresses are this machine's, so the local address of a connection names the pod.
type agents struct {
	lock    sync.RWMutex
	answers map[string]agentwire.Status
	// silent are the addresses at which no agent answers.
	silent map[string]bool
}

func startAgents(ctx context.Context) (*agents, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "0.0.0.0:"+strconv.Itoa(agentwire.Port))
	if err != nil {
		return nil, fmt.Errorf("listening on the port of agents: %w", err)
	}
	a := &agents{answers: map[string]agentwire.Status{}, silent: map[string]bool{}}
	server := &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // stops with ctx
	return a, nil
}

func (a *agents) set(ip string, status agentwire.Status) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.answers[ip] = status
}

func (a *agents) forget(ip string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	delete(a.answers, ip)
	delete(a.silent, ip)
}

// silence lets no agent answer at an address, as a network policy does that drops packets.
func (a *agents) silence(ip string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.silent[ip] = true
}

func (a *agents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reached, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || r.URL.Path != "/status" {
		http.NotFound(w, r)
		return
	}
	a.lock.RLock()
	status, ok := a.answers[reached.IP.String()]
	silent := a.silent[reached.IP.String()]
	a.lock.RUnlock()
	if silent {
		<-r.Context().Done()
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(status) // the client disconnected
}
