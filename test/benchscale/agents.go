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

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// agents answers for all pods: their addresses are this machine's, so that the address
// which a connection reached says which pod is asked.
type agents struct {
	lock    sync.RWMutex
	answers map[string]agentapi.Status
}

// startAgents starts to answer, until ctx ends.
func startAgents(ctx context.Context) (*agents, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "0.0.0.0:"+strconv.Itoa(agentapi.Port))
	if err != nil {
		return nil, fmt.Errorf("listening where the operator asks agents: %w", err)
	}
	a := &agents{answers: map[string]agentapi.Status{}}
	server := &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // it ends with ctx
	return a, nil
}

func (a *agents) tell(ip string, status agentapi.Status) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.answers[ip] = status
}

func (a *agents) forget(ip string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	delete(a.answers, ip)
}

func (a *agents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reached, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || r.URL.Path != "/status" {
		http.NotFound(w, r)
		return
	}
	a.lock.RLock()
	status, ok := a.answers[reached.IP.String()]
	a.lock.RUnlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(status) // nobody is left to be told
}
