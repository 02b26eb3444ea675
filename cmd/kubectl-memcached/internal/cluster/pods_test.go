package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// forwarder is an API server that forwards a port of a pod by SPDY, and rejects WebSocket.
func forwarder(t *testing.T, agent func(request *http.Request, failure, data httpstream.Stream)) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/shop/pods/cache-0-a/portforward" {
			http.Error(w, "only SPDY", http.StatusBadRequest)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
			t.Error(err)
			return
		}
		failures := make(chan httpstream.Stream, 1) // the streams may be seen in any order
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
			go func() {
				<-replied
				if s.Headers().Get(corev1.PortHeader) != strconv.Itoa(wire.Port) {
					t.Errorf("got headers %v", s.Headers())
				}
				if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
					failures <- s
					return
				}
				request, err := http.ReadRequest(bufio.NewReader(s))
				if err != nil {
					t.Error(err)
					return
				}
				agent(request, <-failures, s)
			}()
			return nil
		})
		if connection != nil {
			<-connection.CloseChan()
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestAgentStatusThroughThePortForward(t *testing.T) {
	for name, c := range map[string]struct {
		answer, failure string
		items           int64
		err             string
	}{
		"an agent that answers":   {answer: "HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n{\"items\":7,\"dreams\":true}", items: 7},
		"an agent that fails":     {answer: "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", err: "503 Service Unavailable"},
		"an agent that is absent": {failure: "connection refused", err: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newPods(forwarder(t, func(r *http.Request, failure, data httpstream.Stream) {
				if r.URL.Path != wire.StatusPath {
					t.Errorf("got a request for %s", r.URL)
				}
				fmt.Fprint(failure, c.failure)
				fmt.Fprint(data, c.answer)
				_, _ = failure.Close(), data.Close()
			}))
			if err != nil {
				t.Fatal(err)
			}
			status, err := p.AgentStatus(t.Context(), "shop", "cache-0-a")
			if status.Items != c.items || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %+v, %v", status, err)
			}
		})
	}
}

// An agent that accepts a connection and doesn't answer doesn't let the plugin hang.
func TestDeadlineClosesAPortForward(t *testing.T) {
	requested, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	p, err := newPods(forwarder(t, func(*http.Request, httpstream.Stream, httpstream.Stream) {
		close(requested)
		<-done
	}))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := p.Dial(t.Context(), "shop", "cache-0-a", wire.Port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Hour))
	fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
	<-requested
	_ = conn.SetDeadline(time.Unix(1, 0))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

func TestForbiddenStreamIsAForbiddenRequest(t *testing.T) {
	const text = `pods "cache-0-a" is forbidden: User "bob" cannot create resource "pods/exec" in API group "" in the namespace "shop"`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "cache-0-a", errors.New(text[len(`pods "cache-0-a" is forbidden: `):])).Status())
	}))
	defer server.Close()
	p, err := newPods(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, ofStatus := p.AgentStatus(t.Context(), "shop", "cache-0-a")
	ofCommand := p.Agent(t.Context(), "shop", "cache-0-a", io.Discard, "connections")
	for _, err := range []error{ofStatus, ofCommand} {
		if !apierrors.IsForbidden(err) || err.Error() != text {
			t.Errorf("got %v", err)
		}
	}
	if _, err := p.Logs(t.Context(), "shop", "cache-0-a", "memcached", false); !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), text) {
		t.Errorf("got %v of the log", err)
	}
}
