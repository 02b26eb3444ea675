package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// serve answers on listener until the function is called that it returns.
func serve(listener net.Listener, progress func() snapshotapi.Progress) (end func()) {
	server := &http.Server{
		Handler:           handler(progress),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      5 * time.Second,
		MaxHeaderBytes:    8 << 10,
	}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }
}

func handler(progress func() snapshotapi.Progress) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /progress", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(progress())
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// tell logs the progress now and then, until the function is called that it returns.
func tell(log *slog.Logger, progress func() snapshotapi.Progress) (end func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(tellEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p := progress()
				log.Info("Copying.", "items", p.Items, "of", p.TotalItems, "bytes", p.Bytes, "itemsPerSecond", p.ItemsPerSecond)
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// spoolFolder is where there is room for what is too much for memory.
func (s settings) spoolFolder() string {
	if s.spool != "" {
		return s.spool
	}
	if info, err := os.Stat(snapshotapi.SpoolPath); err == nil && info.IsDir() {
		return snapshotapi.SpoolPath
	}
	return "" // the system's
}
