package serve

import (
	"context"
	"log/slog"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/history"
	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
	"github.com/memcached-operator/memcached-operator/internal/connlimit"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// metricsAge is how long an answer is given again. Every pod of the cluster may be able
	// to connect, and memcached must not work for a flood of requests.
	metricsAge = time.Second
	// metricsTimeout bounds the wait for memcached.
	metricsTimeout = 700 * time.Millisecond
	// metricsRate is how many connections the agent accepts per second, metricsConnections
	// how many it keeps. A flood waits in the kernel, at no cost for memcached.
	metricsRate        = 50
	metricsConnections = 16
)

// collector answers with the metrics. It asks memcached once for all requests within
// metricsAge.
type collector struct {
	states  *States
	history *history.History

	// turn contains one token; its owner may use what follows.
	turn    chan struct{}
	reading metrics.Reading
	process metrics.ProcessReader
	// answers are the last ones, without and with slab classes. They are never modified.
	answers [2]struct {
		text []byte
		at   time.Time
	}
}

// Metrics returns when it can't listen, which the agent survives: a shard is worth
// more than its metrics.
func Metrics(address string, states *States, h *history.History, log *slog.Logger) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Error("This pod has no metrics", "error", err)
		return
	}
	server := &http.Server{
		Handler:           MetricsHandler(states, h),
		ReadHeaderTimeout: 2 * time.Second,
		ReadTimeout:       2 * time.Second,
		WriteTimeout:      5 * time.Second,
		MaxHeaderBytes:    8 << 10,
	}
	// A kept connection would send any number of requests past the listener's rate.
	server.SetKeepAlivesEnabled(false)
	_ = server.Serve(&pacedListener{Listener: &connlimit.Listener{Listener: listener, Limit: metricsConnections}})
}

// MetricsHandler returns what answers with the metrics.
func MetricsHandler(states *States, h *history.History) http.Handler {
	c := &collector{states: states, history: h, turn: make(chan struct{}, 1), process: metrics.ProcessReader{Proc: "/proc"}}
	c.turn <- struct{}{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		value, ok := r.URL.Query()["slabs"]
		classes := ok && value[0] != "false" && value[0] != "0"
		text, err := c.answer(r.Context(), classes)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", metrics.ContentType)
		_, _ = w.Write(text)
	})
	return mux
}

// answer returns the metrics, which are at most metricsAge old.
func (c *collector) answer(ctx context.Context, classes bool) ([]byte, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { c.turn <- struct{}{} }()
	last := &c.answers[0]
	if classes {
		last = &c.answers[1]
	}
	if time.Since(last.at) < metricsAge {
		return last.text, nil
	}
	in := c.collect()
	last.text = metrics.Append(make([]byte, 0, len(last.text)+len(last.text)/8+1<<10), &in, classes)
	last.at = time.Now()
	return last.text, nil
}

func (c *collector) collect() metrics.Input {
	current := c.states.Load()
	in := metrics.Input{Status: current.statusNow(), Serving: current.Serving(), EvictionAge: math.NaN()}
	in.History, in.Probes = c.history.Snapshot()
	in.WorkingSet, in.MemoryLimit = memory.OfContainer()
	in.Process = c.process.Read(current.Status.PID)
	if !in.Serving {
		return in
	}
	if current.Forwarder != nil {
		connections := current.Forwarder.Connections()
		in.Connections = &connections
	}
	in.Restored, in.DroppedLines = current.Client.Restored.Load(), current.Client.DroppedLines.Load()
	// Not the request's context: the next request gets the same answer.
	ctx, cancel := context.WithTimeout(context.Background(), metricsTimeout)
	defer cancel()
	err := current.Client.Command(ctx, func(conn *protocol.Conn, ctx context.Context) error { return c.reading.Read(ctx, conn) })
	if err == nil {
		in.Reading = &c.reading
		in.EvictionAge = c.reading.EvictionAge(time.Now())
		in.Idle = current.Client.Idle.Load()
		in.Size = current.Client.Size.Load()
	}
	return in
}

// pacedListener accepts at most metricsRate connections per second.
type pacedListener struct {
	net.Listener
	next time.Time
}

// Accept is called by one goroutine.
func (l *pacedListener) Accept() (net.Conn, error) {
	time.Sleep(time.Until(l.next))
	conn, err := l.Listener.Accept()
	l.next = time.Now().Add(time.Second / metricsRate)
	return conn, err
}
