// Package ports serves the operator's probes and metrics. Every pod of the cluster can connect to them, so it bounds what
// clients cost, which the servers that a manager has itself don't.
package ports

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/memcached-operator/memcached-operator/internal/connlimit"
	"github.com/memcached-operator/memcached-operator/internal/metricsauth"
)

const (
	// MaxConnections bounds the memory that clients without a token cost the operator at each port.
	MaxConnections = 32
	// MaxHeader has room for the token of a ServiceAccount. net/http accepts 4 KiB more.
	MaxHeader = 8 << 10
)

// Serve adds servers at two addresses to a manager, which starts them before the election. An address that is empty or 0
// has none. Serve returns the manager to which the checks of /readyz can be added.
func Serve(mgr manager.Manager, probes, metrics, certDir string) (manager.Manager, error) {
	r := &readiness{mgr, map[string]healthz.Checker{}}
	if probes != "" && probes != "0" {
		if err := serveProbes(r, probes); err != nil {
			return nil, fmt.Errorf("serving the probes: %w", err)
		}
	}
	if metrics != "" && metrics != "0" {
		if err := serveMetrics(mgr, metrics, certDir); err != nil {
			return nil, fmt.Errorf("serving the metrics: %w", err)
		}
	}
	return r, nil
}

// readiness is a manager whose checks our own server answers.
type readiness struct {
	manager.Manager
	checks map[string]healthz.Checker
}

// AddReadyzCheck implements manager.Manager.
func (r *readiness) AddReadyzCheck(name string, check healthz.Checker) error {
	r.checks[name] = check
	return nil
}

func serveProbes(mgr *readiness, address string) error {
	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{"/healthz": {"ping": healthz.Ping}, "/readyz": mgr.checks} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: checks})
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}
	return serve(mgr, "probes", address, nil, mux)
}

// serveMetrics answers clients that the API server authorizes.
func serveMetrics(mgr manager.Manager, address, certDir string) error {
	config, err := serverTLS(mgr, certDir)
	if err != nil {
		return err
	}
	handler, err := metricsauth.Protect(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetLogger(),
		promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	return serve(mgr, "metrics", address, config, mux)
}

func serve(mgr manager.Manager, name, address string, config *tls.Config, handler http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	listener = &connlimit.Listener{Listener: listener, Limit: MaxConnections}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{
		Handler:        handler,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		MaxHeaderBytes: MaxHeader,
		ReadTimeout:    30 * time.Second,
		IdleTimeout:    90 * time.Second,
		// By default, a connection has 250 requests, a frame of 1 MiB and bodies of 1 MiB.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 4, MaxReadFrameSize: 16 << 10, MaxReceiveBufferPerConnection: 64 << 10},
	}
	server.RegisterOnShutdown(cancel) // a check may wait
	// Less than the grace period of the operator's pod, in which it also has to release its lease.
	return mgr.Add(&manager.Server{Name: name, Listener: listener, Server: server, ShutdownTimeout: new(3 * time.Second)})
}

// serverTLS returns the certificate in a folder, which is read again when it changes. Without one, it is self-signed.
func serverTLS(mgr manager.Manager, dir string) (*tls.Config, error) {
	config := &tls.Config{NextProtos: []string{"h2"}}
	crt, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if _, err := tls.LoadX509KeyPair(crt, key); errors.Is(err, fs.ErrNotExist) {
		crt, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{{127, 0, 0, 1}}, nil)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(crt, key)
		config.Certificates = []tls.Certificate{pair}
		return config, err
	}
	watcher, err := certwatcher.New(crt, key)
	if err != nil {
		return nil, err
	}
	config.GetCertificate = watcher.GetCertificate
	return config, mgr.Add(watcher)
}
