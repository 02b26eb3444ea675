package task

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const progressInterval = 5 * time.Second

func serve(listener net.Listener, progress func() wire.Progress) (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.ProgressPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(progress())
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      5 * time.Second,
		MaxHeaderBytes:    8 << 10,
	}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }
}

// logProgress logs the progress until ctx is done.
func logProgress(ctx context.Context, log *slog.Logger, progress func() wire.Progress) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(progressInterval):
			p := progress()
			log.Info("Copying", "items", p.Items, "of", p.TotalItems, "bytes", p.Bytes, "itemsPerSecond", p.ItemsPerSecond)
		}
	}
}
